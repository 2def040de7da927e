// SPDX-License-Identifier: Apache-2.0
#include "node/preparation.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

class PreparationTest : public testing::Test {
  protected:
    void TearDown() override { (void)remove_tree(folder_); }
    fs::path folder_ = fs::temp_directory_path() / ("glovebox-preparation-" + random_id(8));
};

TEST_F(PreparationTest, IsToldWhileTheBuilderIsAtIt) {
    EXPECT_FALSE(preparation_of(folder_, "base"));
    {
        PreparationNote note(folder_, "base");
        ASSERT_TRUE(preparation_of(folder_, "base"));
        EXPECT_EQ(preparation_of(folder_, "base")->percent, 0);
        note.update({.step = "boot", .fraction = 0.825, .detail = "12 s"});
        auto seen = preparation_of(folder_, "base");
        ASSERT_TRUE(seen);
        EXPECT_EQ(seen->percent, 82);
        EXPECT_EQ(seen->step, "boot");
        EXPECT_EQ(seen->detail, "12 s");
        EXPECT_FALSE(preparation_of(folder_, "other"));
    }
    EXPECT_FALSE(preparation_of(folder_, "base"));
    EXPECT_FALSE(fs::exists(folder_ / ".preparing/base.json"));
}

TEST_F(PreparationTest, TheSecondBuilderOfATemplateIsSilent) {
    PreparationNote first(folder_, "base");
    first.update({.step = "boot", .fraction = 0.8, .detail = ""});
    {
        PreparationNote second(folder_, "base");
        second.update({.step = "install", .fraction = 0.1, .detail = ""});
    }
    ASSERT_TRUE(preparation_of(folder_, "base"));
    EXPECT_EQ(preparation_of(folder_, "base")->step, "boot");
}

TEST_F(PreparationTest, ADeadBuilderTellsNothing) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t builder = ::fork();
    if (builder == 0) {
        PreparationNote note(folder_, "base");
        note.update({.step = "boot", .fraction = 0.8, .detail = ""});
        [[maybe_unused]] ssize_t n = ::write(ready[1], "x", 1);
        for (;;) ::pause();
    }
    char c = 0;
    ASSERT_EQ(::read(ready[0], &c, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    EXPECT_TRUE(preparation_of(folder_, "base"));
    ::kill(builder, SIGKILL);
    ::waitpid(builder, nullptr, 0);
    EXPECT_TRUE(fs::exists(folder_ / ".preparing/base.json"));
    EXPECT_FALSE(preparation_of(folder_, "base"));
    PreparationNote next(folder_, "base");
    ASSERT_TRUE(preparation_of(folder_, "base"));
    EXPECT_EQ(preparation_of(folder_, "base")->step, "");
}

TEST_F(PreparationTest, NonsenseIsNotBelieved) {
    PreparationNote note(folder_, "base");
    for (const char* text : {"", "[]", R"({"percent":"x","step":7})", R"({"percent":900})"}) {
        ASSERT_TRUE(write_file_atomic(folder_ / ".preparing/base.json", text));
        auto seen = preparation_of(folder_, "base");
        ASSERT_TRUE(seen);
        EXPECT_LE(seen->percent, 100);
        EXPECT_EQ(seen->step, "");
    }
}

}  // namespace
}  // namespace gb
