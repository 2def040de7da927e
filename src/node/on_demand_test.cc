// SPDX-License-Identifier: Apache-2.0
#include "node/on_demand.h"

#include <atomic>
#include <future>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "node/preparation.h"

namespace gb {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OnDemandTest : public testing::Test {
  protected:
    void TearDown() override {
        on_demand_.reset();
        (void)remove_tree(folder_);
    }
    void begin() {
        on_demand_ = std::make_unique<OnDemand>(
            folder_,
            [this](const std::string& name, const std::stop_token& stop) -> Status {
                std::unique_lock lock(mutex_);
                begun_.push_back(name);
                changed_.notify_all();
                changed_.wait(lock, stop, [&] { return outcomes_.contains(name); });
                if (stop.stop_requested()) return fail(ErrorCode::canceled, "given up");
                return outcomes_.at(name);
            },
            [this] { return now_.load(); });
    }
    void end(const std::string& name, Status outcome) {
        std::lock_guard lock(mutex_);
        outcomes_.insert_or_assign(name, std::move(outcome));
        changed_.notify_all();
    }
    void wait_begun(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return begun_.size() >= count; });
    }
    // What is said once the answer has changed to something that contains this.
    Error ask_until(const std::string& name, const std::string& part) {
        for (;; ::usleep(1000))
            if (Error said = on_demand_->ask(name); said.message.find(part) != std::string::npos) return said;
    }

    fs::path folder_ = fs::temp_directory_path() / ("glovebox-on-demand-" + random_id(8));
    std::atomic<std::int64_t> now_ = 1'000;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<std::string> begun_;
    std::map<std::string, Status> outcomes_;
    std::unique_ptr<OnDemand> on_demand_;
};

TEST_F(OnDemandTest, BeginsAtTheFirstRequestAndOnce) {
    begin();
    const Error first = on_demand_->ask("base");
    EXPECT_EQ(first.code, ErrorCode::unavailable);
    EXPECT_THAT(first.message, HasSubstr("template 'base' is being prepared: 0 %"));
    wait_begun(1);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(on_demand_->ask("base").code, ErrorCode::unavailable);
    end("base", {});
    on_demand_.reset();
    EXPECT_EQ(begun_, std::vector<std::string>{"base"});
}

TEST_F(OnDemandTest, TellsWhatAnotherProcessPrepares) {
    begin();
    PreparationNote note(folder_, "base");
    note.update({.step = "freeze", .fraction = 0.64, .detail = "70 s"});
    EXPECT_EQ(on_demand_->ask("base").message, "template 'base' is being prepared: 64 %, freeze (70 s); try again");
    EXPECT_EQ(on_demand_->ask("base").code, ErrorCode::unavailable);
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(begun_.empty());
}

TEST_F(OnDemandTest, OneAtATime) {
    begin();
    (void)on_demand_->ask("base");
    wait_begun(1);
    EXPECT_EQ(on_demand_->ask("big").message, "template 'big' is prepared once 'base' is; try again");
    EXPECT_EQ(on_demand_->ask("big").code, ErrorCode::unavailable);
    end("base", {});
    wait_begun(2);
    EXPECT_EQ(begun_, (std::vector<std::string>{"base", "big"}));
}

TEST_F(OnDemandTest, AFailureIsToldAndNotTriedAgainAtOnce) {
    begin();
    (void)on_demand_->ask("base");
    end("base", fail(ErrorCode::internal, "no such package"));
    Error said = ask_until("base", "could not be prepared");
    EXPECT_EQ(said.code, ErrorCode::unavailable);
    EXPECT_THAT(said.message, HasSubstr("no such package. It is tried again when somebody asks for it in 60 s or later"));
    now_ += 59'000;
    EXPECT_THAT(on_demand_->ask("base").message, HasSubstr("could not be prepared"));
    now_ += 1'000;
    EXPECT_THAT(on_demand_->ask("base").message, HasSubstr("is being prepared"));
    said = ask_until("base", "could not be prepared");
    EXPECT_THAT(said.message, HasSubstr("in 2 min or later"));  // longer and longer
    std::lock_guard lock(mutex_);
    EXPECT_EQ(begun_.size(), 2U);
}

TEST_F(OnDemandTest, TheEndOfTheServerIsTheEndOfThePreparation) {
    begin();
    (void)on_demand_->ask("base");
    wait_begun(1);
    on_demand_.reset();  // does not wait for what nobody wants any more
    SUCCEED();
}

TEST_F(OnDemandTest, WithoutAProgramNobodyPrepares) {
    on_demand_ = std::make_unique<OnDemand>(folder_, OnDemand::Prepare());
    EXPECT_EQ(on_demand_->ask("base").code, ErrorCode::not_found);
    EXPECT_THAT(on_demand_->ask("base").message, HasSubstr("`glovebox template prepare base` makes it"));
}

TEST_F(OnDemandTest, TheProgramIsToldAllFoldersAndItsLastWordsAreTheReason) {
    ASSERT_TRUE(make_dirs(folder_));
    const fs::path program = folder_ / "program";
    ASSERT_TRUE(write_file_atomic(program, "#!/bin/sh\necho \"$@\" > \"$(dirname \"$0\")/told\"\n"
                                           "echo 'template base: 12 %, boot' >&2\n"
                                           "echo '{\"level\":\"warn\"}' >&2\n"
                                           "echo 'glovebox: no room' >&2\nexit 3\n",
                                  0755));
    NodeOptions options;
    options.data_dir = folder_ / "data";
    options.images_dir = "/images";
    options.guest_dir = "/guest";
    Status done = prepare_by(program, options)("base", {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "no room");
    EXPECT_EQ(read_file(folder_ / "told").value_or(""),
              "template prepare base --data-dir " + (folder_ / "data").string() +
                  " --cache-dir /var/cache/glovebox --templates-dir " + (folder_ / "data/templates").string() +
                  " --images-dir /images --guest-dir /guest\n");
}

}  // namespace
}  // namespace gb
