#include "control/sandboxes.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "control/fake_node.h"

namespace gb {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

class SandboxesTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        auto store = open_sqlite_store(dir_ / "db");
        ASSERT_TRUE(store);
        store_ = *std::move(store);
        ASSERT_TRUE(store_->add_team(team_));
        ASSERT_TRUE(store_->add_team(other_));
        sandboxes_ = std::make_unique<Sandboxes>(io_.get_executor(), pool_, *store_, node_, "seed");
        ASSERT_TRUE(sandboxes_->start());
        sandboxes_->on_gone([this](const std::string& id) { gone_.push_back(id); });
    }
    void TearDown() override {
        pool_.join();
        sandboxes_.reset();
        store_.reset();
        ASSERT_TRUE(remove_tree(dir_));
    }

    void run(std::function<awaitable<void>()> body) {
        bool done = false;
        asio::co_spawn(io_, body(), [&](const std::exception_ptr& failure) {
            done = true;
            io_.stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.restart();
        io_.run_for(std::chrono::seconds(20));
        EXPECT_TRUE(done);
    }
    awaitable<void> sleep(int ms) {
        asio::steady_timer timer(io_, std::chrono::milliseconds(ms));
        co_await timer.async_wait(asio::use_awaitable);
    }
    static CreateSandbox request(int timeout_s = 60) {
        CreateSandbox out;
        out.template_ref = "base";
        out.timeout_s = timeout_s;
        return out;
    }

    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-control-" + random_id(10));
    asio::io_context io_;
    asio::thread_pool pool_{2};
    std::unique_ptr<Store> store_;
    FakeNode node_;
    Team team_{"t1", "One", "one", 2, 3600}, other_{"t2", "Two", "two", 2, 3600};
    std::unique_ptr<Sandboxes> sandboxes_;
    std::vector<std::string> gone_;
};

TEST_F(SandboxesTest, ACreatedSandboxIsDurableSecuredAndFound) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_TRUE(view);
        EXPECT_EQ(view->access_token.size(), 64U);
        EXPECT_EQ(node_.last_spec.access_token, view->access_token);
        EXPECT_EQ(store_->sandboxes()->size(), 1U);
        EXPECT_TRUE(sandboxes_->get(team_, view->record.id));
        EXPECT_TRUE(sandboxes_->get(team_, view->record.id + "-6532622b"));
        EXPECT_EQ(sandboxes_->get(other_, view->record.id).error().code, ErrorCode::not_found);
    });
}

TEST_F(SandboxesTest, KillIsDoneOnceAndThenNotFound) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        std::string id = view->record.id;
        EXPECT_EQ((co_await sandboxes_->kill(other_, id)).error().code, ErrorCode::not_found);
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
        EXPECT_EQ((co_await sandboxes_->kill(team_, id)).error().code, ErrorCode::not_found);
        EXPECT_TRUE(node_.machines.empty());
        EXPECT_TRUE(store_->sandboxes()->empty());
        EXPECT_EQ(gone_, std::vector<std::string>{id});
    });
}

TEST_F(SandboxesTest, AFailedStartLeavesNothing) {
    node_.create_error = Error(ErrorCode::unavailable, "no free memory");
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_FALSE(view);
        EXPECT_EQ(view.error().code, ErrorCode::unavailable);
        EXPECT_EQ(node_.destroyed, 1);
        EXPECT_TRUE(store_->sandboxes()->empty());
        EXPECT_TRUE(sandboxes_->list(team_, {})->items.empty());
    });
}

TEST_F(SandboxesTest, TheLifetimeEndsOnTime) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request(1));
        co_await sleep(800);
        EXPECT_TRUE(sandboxes_->get(team_, view->record.id));
        co_await sleep(500);
        EXPECT_FALSE(sandboxes_->get(team_, view->record.id));
        EXPECT_TRUE(node_.machines.empty());
    });
}

TEST_F(SandboxesTest, ConnectOnlyExtendsAndTimeoutGoesBothWays) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request(600));
        std::string id = view->record.id;
        auto shorter = co_await sandboxes_->connect(team_, id, 5);
        EXPECT_EQ(shorter->record.ends_ms, view->record.ends_ms);
        auto longer = co_await sandboxes_->connect(team_, id, 1200);
        EXPECT_GT(longer->record.ends_ms, view->record.ends_ms);
        EXPECT_TRUE(co_await sandboxes_->set_timeout(team_, id, 30));
        EXPECT_LE(sandboxes_->get(team_, id)->record.ends_ms, now_ms() + 30'000);
        EXPECT_EQ(store_->sandboxes()->at(0).ends_ms, sandboxes_->get(team_, id)->record.ends_ms);
        EXPECT_TRUE(co_await sandboxes_->set_timeout(team_, id, -1));
        co_await sleep(100);
        EXPECT_FALSE(sandboxes_->get(team_, id));
    });
}

TEST_F(SandboxesTest, TimeoutsOutOfRangeAreRefused) {
    run([&]() -> awaitable<void> {
        for (int timeout : {0, -1, 3601})
            EXPECT_EQ((co_await sandboxes_->create(team_, request(timeout))).error().code, ErrorCode::invalid_argument);
    });
}

TEST_F(SandboxesTest, UnknownTemplateAndTagAreNotFound) {
    run([&]() -> awaitable<void> {
        auto r = request();
        for (auto ref : {"nope", "base:v2", ""}) {
            r.template_ref = ref;
            EXPECT_EQ((co_await sandboxes_->create(team_, r)).error().code, ErrorCode::not_found) << ref;
        }
        r.template_ref = "base:default";
        EXPECT_TRUE(co_await sandboxes_->create(team_, r));
    });
}

TEST_F(SandboxesTest, TheTeamsLimitHoldsEvenForCreatesUnderWay) {
    node_.create_delay_ms = 50;
    run([&]() -> awaitable<void> {
        int ok = 0, refused = 0;
        for (int i = 0; i < 4; ++i)
            asio::co_spawn(
                io_, sandboxes_->create(team_, request()), [&](const std::exception_ptr&, Result<SandboxView> view) {
                    if (view)
                        ++ok;
                    else if (view.error().code == ErrorCode::resource_exhausted)
                        ++refused;
                });
        co_await sleep(400);
        EXPECT_EQ(ok, 2);
        EXPECT_EQ(refused, 2);
    });
}

TEST_F(SandboxesTest, TwoKillsAtOnceHaveOneWinner) {
    node_.destroy_delay_ms = 50;
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        int ok = 0, missing = 0;
        for (int i = 0; i < 3; ++i)
            asio::co_spawn(io_, sandboxes_->kill(team_, view->record.id),
                           [&](const std::exception_ptr&, Status status) { ++(status ? ok : missing); });
        co_await sleep(300);
        EXPECT_EQ(ok, 1);
        EXPECT_EQ(missing, 2);
        EXPECT_EQ(node_.destroyed, 1);
    });
}

TEST_F(SandboxesTest, AMachineThatEndsByItselfIsForgotten) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        node_.exited(view->record.id, "panic");
        co_await sleep(50);
        EXPECT_FALSE(sandboxes_->get(team_, view->record.id));
        EXPECT_TRUE(store_->sandboxes()->empty());
        EXPECT_EQ(gone_.size(), 1U);
    });
}

TEST_F(SandboxesTest, AStopWaitsForCreatesUnderWayAndLeavesNothing) {
    node_.create_delay_ms = 100;
    run([&]() -> awaitable<void> {
        std::optional<Result<SandboxView>> late;
        asio::co_spawn(io_, sandboxes_->create(team_, request()),
                       [&](const std::exception_ptr&, Result<SandboxView> view) { late = std::move(view); });
        co_await sleep(20);
        co_await sandboxes_->kill_all();
        EXPECT_TRUE(late);
        EXPECT_FALSE(*late);
        EXPECT_EQ((co_await sandboxes_->create(team_, request())).error().code, ErrorCode::unavailable);
        EXPECT_TRUE(node_.machines.empty());
        EXPECT_TRUE(store_->sandboxes()->empty());
    });
}

TEST_F(SandboxesTest, AMachineThatEndsWhileItStartsFailsTheCreate) {
    run([&]() -> awaitable<void> {
        node_.after_create = [&](const std::string& id) { node_.exited(id, "panic"); };
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_FALSE(view);
        EXPECT_TRUE(node_.machines.empty());
        EXPECT_TRUE(sandboxes_->list(team_, {})->items.empty());
    });
}

TEST_F(SandboxesTest, RowsOfAPreviousRunAreCleared) {
    run([&]() -> awaitable<void> {
        co_await sandboxes_->create(team_, request());
        Sandboxes next(io_.get_executor(), pool_, *store_, node_, "seed");
        EXPECT_TRUE(next.start());
        EXPECT_TRUE(store_->sandboxes()->empty());
    });
}

}  // namespace
}  // namespace gb
