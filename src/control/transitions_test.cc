// SPDX-License-Identifier: Apache-2.0
// Races: whatever meets whatever, there is one outcome.
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

class TransitionsTest : public SandboxesTest {
  protected:
    awaitable<std::string> create(int timeout_s = 60, bool auto_pause = false, bool auto_resume = false) {
        CreateSandbox wanted = request(timeout_s);
        wanted.auto_pause = auto_pause;
        wanted.auto_resume = auto_resume;
        wanted.env_vars = {{"A", "b"}};
        auto view = co_await sandboxes_->create(team_, wanted);
        EXPECT_TRUE(view) << view.error().message;
        co_return view ? view->record.id : std::string();
    }
    SandboxState state_in_store(const std::string& id) {
        auto rows = store_->sandboxes();
        for (const SandboxRecord& row : *rows)
            if (row.id == id) return row.state;
        return SandboxState::killing;
    }
    std::optional<ErrorCode> code(const Status& status) {
        if (status) return std::nullopt;
        return status.error().code;
    }
};

TEST_F(TransitionsTest, APausedSandboxIsDurableListedAndWakesWithItsIdentity) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        const auto before = sandboxes_->get(team_, id);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        EXPECT_EQ(gone_, std::vector<std::string>{id});
        EXPECT_EQ(state_in_store(id), SandboxState::paused);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        EXPECT_LE(sandboxes_->get(team_, id)->record.ends_ms, now_ms());
        EXPECT_FALSE(sandboxes_->is_running(id));
        EXPECT_EQ(code(co_await sandboxes_->pause(team_, id, PauseMode::with_memory)), ErrorCode::failed_precondition);
        EXPECT_EQ(code(co_await sandboxes_->set_timeout(team_, id, 10)), ErrorCode::not_found);
        EXPECT_EQ(code(co_await sandboxes_->extend(team_, id, 10)), ErrorCode::not_found);
        auto after = co_await sandboxes_->connect(team_, id, 30);
        EXPECT_TRUE(after);
        EXPECT_TRUE(after->resumed);
        EXPECT_EQ(after->access_token, before->access_token);
        EXPECT_EQ(node_.last_spec.access_token, before->access_token);
        EXPECT_EQ(node_.last_spec.env_vars, (std::map<std::string, std::string>{{"A", "b"}}));
        EXPECT_EQ(state_in_store(id), SandboxState::running);
        EXPECT_GT(after->record.ends_ms, now_ms() + 29'000);
        EXPECT_FALSE((co_await sandboxes_->connect(team_, id, 30))->resumed);
    });
}

TEST_F(TransitionsTest, PausesAtOnceAllSucceedAndPauseItOnce) {
    node_.pause_delay_ms = 50;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        int ended = 0, ok = 0, other = 0;
        for (int i = 0; i < 5; ++i)
            asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory),
                           [&](const std::exception_ptr&, Status status) {
                               ++ended;
                               if (status) ++ok;
                               EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
                           });
        // What this one asks for is not what happens.
        asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::filesystem_only),
                       [&](const std::exception_ptr&, Status status) {
                           ++ended;
                           if (code(status) == ErrorCode::failed_precondition) ++other;
                       });
        while (ended < 6) co_await sleep(5);
        EXPECT_EQ(ok, 5);
        EXPECT_EQ(other, 1);
        EXPECT_EQ(gone_, std::vector<std::string>{id});
        EXPECT_EQ(code(co_await sandboxes_->pause(team_, id, PauseMode::with_memory)), ErrorCode::failed_precondition);
    });
}

TEST_F(TransitionsTest, APauseThatWaitedForOneThatFailedIsDoneAnew) {
    node_.pause_delay_ms = 50;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        node_.pause_error = Error(ErrorCode::unavailable, "no room");
        int failed = 0, ended = 0;
        for (int i = 0; i < 2; ++i)
            asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory),
                           [&](const std::exception_ptr&, Status status) {
                               ++ended;
                               if (!status) ++failed;
                               node_.pause_error.reset();
                           });
        while (ended < 2) co_await sleep(5);
        EXPECT_EQ(failed, 1);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
    });
}

TEST_F(TransitionsTest, ResumesAtOnceAllSucceedWhenItRuns) {
    node_.create_delay_ms = 40;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
        int ended = 0, ok = 0;
        for (int i = 0; i < 5; ++i)
            asio::co_spawn(io_, sandboxes_->resume(team_, id, 60 + i),
                           [&](const std::exception_ptr&, Result<SandboxView> view) {
                               ++ended;
                               if (!view) return;
                               ++ok;
                               EXPECT_TRUE(view->resumed);
                               EXPECT_EQ(view->record.state, SandboxState::running);
                               EXPECT_TRUE(sandboxes_->is_running(id));
                           });
        while (ended < 5) co_await sleep(5);
        EXPECT_EQ(ok, 5);
        EXPECT_GT(sandboxes_->get(team_, id)->record.ends_ms, now_ms() + 60'000);  // the longest that was asked for
        EXPECT_EQ((co_await sandboxes_->resume(team_, id, 60)).error().code, ErrorCode::failed_precondition);
    });
}

TEST_F(TransitionsTest, FiveConnectsToAPausedSandboxAllGetItRunning) {
    node_.create_delay_ms = 40;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
        int ok = 0, resumed = 0;
        for (int i = 0; i < 5; ++i)
            asio::co_spawn(io_, sandboxes_->connect(team_, id, 60),
                           [&](const std::exception_ptr&, Result<SandboxView> view) {
                               if (!view) return;
                               ++ok;
                               resumed += view->resumed ? 1 : 0;
                               EXPECT_TRUE(sandboxes_->is_running(id));
                           });
        co_await sleep(300);
        EXPECT_EQ(ok, 5);
        EXPECT_EQ(resumed, 1);
    });
}

TEST_F(TransitionsTest, ConnectDuringPauseWaitsAndWakes) {
    node_.pause_delay_ms = 60;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
        co_await sleep(10);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::pausing);
        EXPECT_EQ(code(co_await sandboxes_->set_timeout(team_, id, 5)), ErrorCode::failed_precondition);
        auto view = co_await sandboxes_->connect(team_, id, 60);
        EXPECT_TRUE(view && view->resumed);
        EXPECT_TRUE(sandboxes_->is_running(id));
    });
}

TEST_F(TransitionsTest, KillDuringPauseAndDuringResumeLeavesNothing) {
    node_.pause_delay_ms = node_.create_delay_ms = 50;
    run([&]() -> awaitable<void> {
        for (bool resume : {false, true}) {
            const std::string id = co_await create();
            if (resume) co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
            if (resume)
                asio::co_spawn(io_, sandboxes_->connect(team_, id, 60), asio::detached);
            else
                asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
            co_await sleep(10);
            EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
            EXPECT_EQ(code(co_await sandboxes_->kill(team_, id)), ErrorCode::not_found);
            EXPECT_TRUE(node_.machines.empty());
            EXPECT_TRUE(node_.paused.empty());
            EXPECT_TRUE(store_->sandboxes()->empty());
        }
        EXPECT_TRUE(store_->open_runs()->empty());
    });
}

TEST_F(TransitionsTest, KillsAtOnceAllSucceedAndEndItOnce) {
    node_.destroy_delay_ms = 50;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        int ok = 0;
        for (int i = 0; i < 3; ++i)
            asio::co_spawn(io_, sandboxes_->kill(team_, id), [&](const std::exception_ptr&, Status status) {
                ok += status ? 1 : 0;
                EXPECT_TRUE(node_.machines.empty());
            });
        co_await sleep(10);
        EXPECT_EQ((co_await sandboxes_->connect(team_, id, 60)).error().code, ErrorCode::not_found);
        EXPECT_FALSE(sandboxes_->get(team_, id));
        co_await sleep(150);
        EXPECT_EQ(ok, 3);
        EXPECT_EQ(node_.destroyed, 1);
        EXPECT_EQ(code(co_await sandboxes_->kill(team_, id)), ErrorCode::not_found);
    });
}

TEST_F(TransitionsTest, AFailedPauseLeavesItRunningWithItsTimer) {
    node_.pause_error = Error(ErrorCode::no_space, "disk full");
    run([&]() -> awaitable<void> {
        const std::string id = co_await create(1);
        EXPECT_EQ(code(co_await sandboxes_->pause(team_, id, PauseMode::with_memory)), ErrorCode::no_space);
        EXPECT_TRUE(sandboxes_->is_running(id));
        co_await sleep(1300);
        EXPECT_FALSE(sandboxes_->get(team_, id));
    });
}

TEST_F(TransitionsTest, AFailedResumeLeavesItPaused) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
        node_.create_error = Error(ErrorCode::unavailable, "no memory");
        EXPECT_FALSE(co_await sandboxes_->connect(team_, id, 60));
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        node_.create_error.reset();
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
    });
}

TEST_F(TransitionsTest, ALifetimesEndPausesWhereThatWasAsked) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create(1, true);
        co_await sleep(1300);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        EXPECT_TRUE(node_.paused.contains(id));
        EXPECT_EQ(sandboxes_->counts().paused, 1U);
    });
}

TEST_F(TransitionsTest, WhatCannotBeSavedAtItsEndRunsOn) {
    node_.pause_error = Error(ErrorCode::no_space, "disk full");
    run([&]() -> awaitable<void> {
        const std::string id = co_await create(1, true);
        co_await sleep(1300);
        EXPECT_TRUE(sandboxes_->is_running(id));
        node_.pause_error.reset();
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
    });
}

TEST_F(TransitionsTest, PausedSandboxesTakeNoPlaceUntilTheyWake) {
    run([&]() -> awaitable<void> {
        const std::string one = co_await create();
        co_await sandboxes_->pause(team_, one, PauseMode::with_memory);
        co_await create();
        co_await create();
        auto woken = co_await sandboxes_->connect(team_, one, 60);
        EXPECT_EQ(woken.error().code, ErrorCode::resource_exhausted);
        EXPECT_EQ(sandboxes_->get(team_, one)->record.state, SandboxState::paused);
    });
}

TEST_F(TransitionsTest, TrafficWakesOnlyWhatAskedForIt) {
    run([&]() -> awaitable<void> {
        const std::string deaf = co_await create(60), light = co_await create(60, true, true);
        for (const std::string& id : {deaf, light}) co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
        EXPECT_EQ(code(co_await sandboxes_->wake(deaf)), ErrorCode::not_found);
        EXPECT_TRUE(co_await sandboxes_->wake(light));
        EXPECT_TRUE(sandboxes_->is_running(light));
        EXPECT_GT(sandboxes_->get(team_, light)->record.ends_ms, now_ms() + 250'000);  // at least 300 s
        co_await sandboxes_->pause(team_, light, PauseMode::filesystem_only);
        EXPECT_EQ(code(co_await sandboxes_->wake(light)), ErrorCode::not_found);
        EXPECT_EQ(code(co_await sandboxes_->wake("inever")), ErrorCode::not_found);
    });
}

TEST_F(TransitionsTest, ResumeOfTheFirstGenerationRefusesWhatRuns) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        EXPECT_EQ((co_await sandboxes_->resume(team_, id, 60)).error().code, ErrorCode::failed_precondition);
        co_await sandboxes_->pause(team_, id, PauseMode::with_memory);
        EXPECT_TRUE((co_await sandboxes_->resume(team_, id, 60))->resumed);
        EXPECT_EQ((co_await sandboxes_->resume(team_, "inever", 60)).error().code, ErrorCode::not_found);
    });
}

TEST_F(TransitionsTest, AMachineThatEndsDuringItsPauseOrResumeIsNotRunningAfterwards) {
    node_.pause_delay_ms = node_.create_delay_ms = 40;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        node_.pause_error = Error(ErrorCode::unavailable, "the machine ended");
        asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
        co_await sleep(10);
        node_.exited(id, "panic");
        co_await sleep(150);
        EXPECT_FALSE(sandboxes_->get(team_, id));
        EXPECT_TRUE(store_->sandboxes()->empty());
    });
}

TEST_F(TransitionsTest, ARestartTakesOverWhatRunsAndKeepsWhatIsPaused) {
    run([&]() -> awaitable<void> {
        const std::string running = co_await create(600), paused = co_await create();
        co_await sandboxes_->pause(team_, paused, PauseMode::with_memory);
        const std::string lost = co_await create();
        const auto ends = sandboxes_->get(team_, running)->record.ends_ms;
        node_.machines.erase(lost);
        node_.machines.insert("istray");
        open();
        EXPECT_EQ(sandboxes_->get(team_, running)->record.ends_ms, ends);
        EXPECT_TRUE(sandboxes_->is_running(running));
        EXPECT_EQ(sandboxes_->get(team_, paused)->record.state, SandboxState::paused);
        EXPECT_FALSE(sandboxes_->get(team_, lost));
        EXPECT_EQ(store_->sandboxes()->size(), 2U);
        EXPECT_EQ(store_->open_runs()->size(), 1U);
        co_await sleep(50);
        EXPECT_FALSE(node_.machines.contains("istray"));
        EXPECT_TRUE(co_await sandboxes_->kill(team_, running));
        EXPECT_TRUE((co_await sandboxes_->connect(team_, paused, 60))->resumed);
    });
    EXPECT_EQ(events().back(), "resumed");
}

TEST_F(TransitionsTest, ALifetimeThatEndedWhileNoServerRanEndsAtTheStart) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create(1);
        sandboxes_.reset();  // its timer dies with it
        co_await sleep(1200);
        open();
        co_await sleep(100);
        EXPECT_FALSE(sandboxes_->get(team_, id));
        EXPECT_TRUE(node_.machines.empty());
    });
}

TEST_F(TransitionsTest, APauseOrResumeThatWasNotRecordedCountsAfterARestart) {
    run([&]() -> awaitable<void> {
        const std::string saved = co_await create(), woken = co_await create();
        co_await sandboxes_->pause(team_, woken, PauseMode::with_memory);
        node_.machines.erase(saved);  // saved by the node, the server killed before it wrote so
        node_.paused.insert(saved);
        node_.paused.erase(woken);  // restored by the node, the same
        node_.machines.insert(woken);
        open();
        EXPECT_EQ(sandboxes_->get(team_, saved)->record.state, SandboxState::paused);
        EXPECT_EQ(state_in_store(saved), SandboxState::paused);
        EXPECT_TRUE(sandboxes_->is_running(woken));
        EXPECT_EQ(state_in_store(woken), SandboxState::running);
        EXPECT_GT(sandboxes_->get(team_, woken)->record.ends_ms, now_ms());
        EXPECT_EQ(store_->open_runs()->size(), 1U);
    });
}

TEST_F(TransitionsTest, LeavingWaitsForWhatIsUnderWayAndKeepsTheRest) {
    node_.create_delay_ms = 60;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        std::optional<Result<SandboxView>> late;
        asio::co_spawn(io_, sandboxes_->create(team_, request()),
                       [&](const std::exception_ptr&, Result<SandboxView> view) { late = std::move(view); });
        co_await sleep(10);
        co_await sandboxes_->leave_running();
        EXPECT_TRUE(late && *late);
        EXPECT_EQ(node_.machines.size(), 2U);
        EXPECT_EQ((co_await sandboxes_->create(team_, request())).error().code, ErrorCode::unavailable);
        EXPECT_EQ(store_->sandboxes()->size(), 2U);
        open();
        EXPECT_TRUE(sandboxes_->is_running(id));
    });
}

TEST_F(TransitionsTest, TheTrafficTokenIsNotTheAccessToken) {
    run([&]() -> awaitable<void> {
        CreateSandbox closed = request();
        closed.public_traffic = false;
        auto view = co_await sandboxes_->create(team_, closed);
        EXPECT_EQ(view->traffic_token.size(), 64U);
        EXPECT_NE(view->traffic_token, view->access_token);
        EXPECT_EQ(sandboxes_->destination(view->record.id)->traffic_token, view->traffic_token);
        auto open = co_await sandboxes_->create(team_, request());
        EXPECT_EQ(open->traffic_token, "");
    });
}

}  // namespace
}  // namespace gb
