// SPDX-License-Identifier: Apache-2.0
#include "control/sandboxes_fixture.h"

#include "base/clock.h"

namespace gb {
namespace {

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

TEST_F(SandboxesTest, ATemplateOnItsWayIsToldToWhoWantsToStartIt) {
    node_.preparing = "big";
    run([&]() -> awaitable<void> {
        CreateSandbox wanted = request();
        for (const char* ref : {"big", " BIG:default"}) {
            wanted.template_ref = ref;
            auto view = co_await sandboxes_->create(team_, wanted);
            EXPECT_EQ(view.error().code, ErrorCode::unavailable);
            EXPECT_EQ(view.error().message, "template 'big' is being prepared");
        }
        for (const char* ref : {"small", "big:v2", "one/big"}) {
            wanted.template_ref = ref;
            EXPECT_EQ((co_await sandboxes_->create(team_, wanted)).error().code, ErrorCode::not_found) << ref;
        }
        // Who only asks whether it is there begins nothing.
        auto found = co_await sandboxes_->templates().find(team_, "big", Templates::Wanted::to_know);
        EXPECT_EQ(found.error().code, ErrorCode::not_found);
        EXPECT_TRUE(store_->sandboxes()->empty());
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

TEST_F(SandboxesTest, ThePlanLimitsHowQuicklySandboxesAreMade) {
    team_.plan = "slow";
    run([&]() -> awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            auto view = co_await sandboxes_->create(team_, request());
            EXPECT_TRUE(view);
            if (view) co_await sandboxes_->kill(team_, view->record.id);
        }
        auto refused = co_await sandboxes_->create(team_, request());
        EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
        EXPECT_NE(refused.error().message.find("plan 'slow'"), std::string::npos);
        EXPECT_GT(sandboxes_->create_retry_after_s(team_), 5);
    });
}

TEST_F(SandboxesTest, ATemplateLargerThanThePlanIsRefused) {
    team_.plan = "tiny";
    SandboxesOptions options;
    options.plans.set({.name = "tiny", .max_memory_mib = 256});
    sandboxes_ = std::make_unique<Sandboxes>(io_.get_executor(), pool_, *store_, node_, options);
    ASSERT_TRUE(sandboxes_->start());
    run([&]() -> awaitable<void> {
        auto refused = co_await sandboxes_->create(team_, request());
        EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
        EXPECT_TRUE(node_.machines.empty());
    });
}

TEST_F(SandboxesTest, EveryRunIsMeteredAndEveryMoveIsAnEvent) {
    run([&]() -> awaitable<void> {
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_EQ(store_->open_runs()->size(), 1U);
        co_await sandboxes_->set_timeout(team_, view->record.id, 50);
        co_await sandboxes_->pause(team_, view->record.id, PauseMode::with_memory);
        EXPECT_TRUE(store_->open_runs()->empty());
        co_await sandboxes_->connect(team_, view->record.id, 50);
        co_await sandboxes_->kill(team_, view->record.id);
    });
    EXPECT_EQ(events(), (std::vector<std::string>{"created", "updated", "paused", "resumed", "killed"}));
    const auto all = runs();
    ASSERT_EQ(all.size(), 2U);
    for (const SandboxRun& one : all) {
        EXPECT_GE(one.ended_ms, one.started_ms);
        EXPECT_NE(one.ended_ms, 0);
    }
    EXPECT_NE(all[0].id, all[1].id);
}

TEST_F(SandboxesTest, AFailedWriteIsAFailedCreateThatLeavesNothing) {
    run([&]() -> awaitable<void> {
        Team unknown{"nobody", "No", "no", "small"};  // the row refers to a team that is not there
        auto view = co_await sandboxes_->create(unknown, request());
        EXPECT_FALSE(view);
        EXPECT_TRUE(node_.machines.empty());
        EXPECT_EQ(sandboxes_->counts().running + sandboxes_->counts().in_transition, 0U);
    });
}

}  // namespace
}  // namespace gb
