// SPDX-License-Identifier: Apache-2.0
#include "control/telemetry.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

using namespace std::chrono_literals;

class TelemetryTest : public SandboxesTest {
  protected:
    void SetUp() override {
        SandboxesTest::SetUp();
        options_ = {.every = 200ms, .first_after = 10ms, .look_every = 20ms};
        node_.telemetry_answer = [this](const std::string&, std::uint64_t after) { return answer(after); };
    }
    void TearDown() override {
        pool_.join();
        collector_.reset();
        SandboxesTest::TearDown();
    }
    // A guest that logs one entry for each number up to `logged_`, and has used a quarter of its processor.
    Result<Telemetry> answer(std::uint64_t after) {
        Telemetry out;
        ticks_ += 100;
        out.metrics = {
            .cpu_busy_ticks = ticks_ / 4, .cpu_total_ticks = ticks_, .mem_used = 5, .mem_total = 10};
        out.next = after;
        for (std::uint64_t i = after + 1; i <= logged_; ++i) {
            out.entries.push_back({i, now_ms(), "info", std::to_string(i), {{"logger", "process"}}});
            out.next = i;
        }
        return out;
    }
    // Runs `body` beside a running collector.
    void collect(std::function<awaitable<void>()> body, bool periodically = true) {
        collector_ =
            std::make_unique<TelemetryCollector>(io_.get_executor(), pool_, *sandboxes_, *store_, options_);
        sandboxes_->before_end(
            [this](SandboxRecord record) { return collector_->collect_last(std::move(record)); });
        asio::cancellation_signal over;
        if (periodically)
            asio::co_spawn(io_, collector_->run(), asio::bind_cancellation_slot(over.slot(), asio::detached));
        run([&]() -> awaitable<void> {
            co_await body();
            over.emit(asio::cancellation_type::all);
        });
    }
    awaitable<SandboxRecord> make() {
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_TRUE(view);
        co_return view->record;
    }
    // Waits until `check` is true.
    awaitable<bool> eventually(std::function<bool()> check) {
        for (int i = 0; i < 15'000 && !check(); ++i) co_await sleep(20);
        co_return check();
    }
    std::vector<MetricPoint> points(const std::string& id) {
        return store_->metrics({.sandbox_id = id}).value();
    }
    // Messages of the guest, oldest first.
    std::vector<std::string> messages(const std::string& id, std::string_view logger = "process") {
        std::vector<std::string> out;
        for (const LogEntry& entry : store_->logs({.sandbox_id = id}).value())
            if (entry.fields.at("logger") == logger) out.push_back(entry.message);
        return out;
    }

    TelemetryOptions options_;
    std::uint64_t logged_ = 0, ticks_ = 0;
    std::unique_ptr<TelemetryCollector> collector_;
};

TEST_F(TelemetryTest, PointsAndEntriesArriveOnceAndBelongToTheTeam) {
    logged_ = 2;
    collect([&]() -> awaitable<void> {
        const std::string id = (co_await make()).id;
        EXPECT_TRUE(co_await eventually([&] { return !points(id).empty() && messages(id).size() == 2; }));
        logged_ = 3;
        EXPECT_TRUE(co_await eventually([&] { return messages(id).size() == 3; }));
        EXPECT_EQ(messages(id), (std::vector<std::string>{"1", "2", "3"}));
        EXPECT_DOUBLE_EQ(points(id)[0].cpu_used_pct, 25);
        EXPECT_EQ(points(id)[0].team_id, team_.id);
        EXPECT_EQ(points(id)[0].mem_used, 5);
        EXPECT_EQ(points(id)[0].cpu_count, 1);
    });
}

TEST_F(TelemetryTest, ASilentGuestDelaysNobodyElse) {
    options_.most_at_once = 2;
    collect([&]() -> awaitable<void> {
        const std::string silent = (co_await make()).id;
        node_.hung.insert(silent);
        const std::string other = (co_await make()).id;
        EXPECT_TRUE(co_await eventually([&] { return node_.telemetry_calls[silent] > 0; }));
        EXPECT_TRUE(co_await eventually([&] { return node_.telemetry_calls[other] >= 5; }));
        EXPECT_TRUE(points(silent).empty());
        EXPECT_FALSE(points(other).empty());
    });
}

TEST_F(TelemetryTest, AWrongAnswerCostsOnlyItself) {
    int calls = 0;
    logged_ = 1;
    node_.telemetry_answer = [&](const std::string&, std::uint64_t after) -> Result<Telemetry> {
        if (++calls == 1) return fail(ErrorCode::internal, "not an answer");
        return answer(after);
    };
    collect([&]() -> awaitable<void> {
        const std::string id = (co_await make()).id;
        EXPECT_TRUE(co_await eventually([&] { return messages(id) == std::vector<std::string>{"1"}; }));
        EXPECT_GE(calls, 2);
    });
}

TEST_F(TelemetryTest, WhatIsAskedForNowIsThereWhenTheCallReturns) {
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            logged_ = 4;
            co_await collector_->collect_now(record);
            EXPECT_EQ(messages(record.id).size(), 4U);
            logged_ = 5;
            co_await collector_->collect_now(record);
            EXPECT_EQ(messages(record.id).size(), 5U);
        },
        false);
}

TEST_F(TelemetryTest, TheLastCollectionComesBeforeTheEnd) {
    collect(
        [&]() -> awaitable<void> {
            logged_ = 3;
            const std::string id = (co_await make()).id;
            EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
            EXPECT_TRUE(co_await eventually([&] { return messages(id).size() == 3; }));
            const std::string second = (co_await make()).id;
            EXPECT_TRUE(co_await sandboxes_->pause(team_, second, PauseMode::with_memory));
            EXPECT_TRUE(co_await eventually([&] { return messages(second).size() == 3; }));
        },
        false);
}

TEST_F(TelemetryTest, AHungGuestCannotHoldUpItsEnd) {
    node_.destroy_delay_ms = 0;
    collect(
        [&]() -> awaitable<void> {
            const std::string id = (co_await make()).id;
            node_.hung.insert(id);
            EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
            // The guest's answer would have come after 2 s: the kill did not wait for it.
            EXPECT_EQ(node_.telemetry_calls[id], 1);
            EXPECT_EQ(node_.telemetry_answered[id], 0);
            EXPECT_EQ(node_.destroyed, 1);
        },
        false);
}

TEST_F(TelemetryTest, AnEndSoonAfterACollectionNeedsNoOther) {
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            co_await collector_->collect_now(record);
            EXPECT_TRUE(co_await sandboxes_->kill(team_, record.id));
            EXPECT_EQ(node_.telemetry_calls[record.id], 1);
        },
        false);
}

TEST_F(TelemetryTest, AMachineThatEndedByItselfIsNotAsked) {
    collect(
        [&]() -> awaitable<void> {
            const std::string id = (co_await make()).id;
            node_.exited(id, "the guest ended");
            EXPECT_TRUE(co_await eventually([&] { return !sandboxes_->get(team_, id); }));
            EXPECT_EQ(node_.telemetry_calls[id], 0);
        },
        false);
}

TEST_F(TelemetryTest, AResumedSandboxBeginsItsLogAgain) {
    logged_ = 2;
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord first = co_await make();
            co_await collector_->collect_now(first);
            EXPECT_TRUE(co_await sandboxes_->pause(team_, first.id, PauseMode::with_memory));
            co_await sleep(5);
            auto view = co_await sandboxes_->resume(team_, first.id, 60);
            EXPECT_TRUE(view);
            logged_ = 1;  // the first entry of the new identity
            co_await collector_->collect_now(view->record);
            EXPECT_EQ(messages(first.id), (std::vector<std::string>{"1", "2", "1"}));
        },
        false);
}

TEST_F(TelemetryTest, AnotherServerGoesOnWhereThisOneStopped) {
    logged_ = 2;
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            const std::int64_t at = now_ms();
            node_.telemetry_answer = [&, at](const std::string&, std::uint64_t after) {
                auto out = answer(after);
                for (GuestLogEntry& entry : out->entries)
                    entry.time_ms = at + static_cast<std::int64_t>(entry.sequence);
                return out;
            };
            co_await sleep(20);
            co_await collector_->collect_now(record);
            EXPECT_EQ(messages(record.id).size(), 2U);
            TelemetryCollector next(io_.get_executor(), pool_, *sandboxes_, *store_, options_);
            logged_ = 3;
            co_await next.collect_now(record);
            EXPECT_EQ(messages(record.id), (std::vector<std::string>{"1", "2", "3"}));
        },
        false);
}

TEST_F(TelemetryTest, AFloodIsCutAndTold) {
    options_.log_burst_bytes = 1500;
    options_.log_bytes_per_second = 0;
    logged_ = 1000;
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            co_await collector_->collect_now(record);
            EXPECT_GT(messages(record.id).size(), 5U);
            EXPECT_LT(messages(record.id).size(), 15U);
        },
        false);
    options_.log_burst_bytes = 1e6;
    logged_ = 10;
    node_.telemetry_answer = [this](const std::string&, std::uint64_t after) {
        auto out = answer(after);
        out->dropped = 7;
        return out;
    };
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            co_await collector_->collect_now(record);
            const auto told = messages(record.id, "sandbox");
            EXPECT_EQ(told.back(), "7 log entries were dropped: there were too many");
        },
        false);
}

TEST_F(TelemetryTest, TimesOfAGuestStayWithinItsLife) {
    node_.telemetry_answer = [](const std::string&, std::uint64_t) -> Result<Telemetry> {
        Telemetry out;
        out.entries = {{1, 0, "info", "1970", {{"logger", "process"}}},
                       {2, 253'402'300'799'999, "info", "9999", {{"logger", "process"}}}};
        out.next = 2;
        return out;
    };
    collect(
        [&]() -> awaitable<void> {
            const SandboxRecord record = co_await make();
            co_await collector_->collect_now(record);
            for (const LogEntry& entry : store_->logs({.sandbox_id = record.id}).value()) {
                EXPECT_LE(entry.time_ms, now_ms()) << entry.message;
                EXPECT_GT(entry.time_ms, record.started_ms - 100'000) << entry.message;
            }
            EXPECT_EQ(messages(record.id).size(), 2U);
        },
        false);
}

TEST_F(TelemetryTest, TheLogTellsTheSandboxsLife) {
    collect(
        [&]() -> awaitable<void> {
            const std::string id = (co_await make()).id;
            EXPECT_TRUE(co_await sandboxes_->set_timeout(team_, id, 30));
            EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
            EXPECT_TRUE(co_await sandboxes_->resume(team_, id, 60));
            EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
            const auto told = messages(id, "sandbox");
            EXPECT_EQ(told.size(), 5U);
            EXPECT_EQ(told[0], "sandbox created");
            EXPECT_TRUE(told[1].starts_with("sandbox timeout moved to 20")) << told[1];
            EXPECT_EQ(told[2], "sandbox paused");
            EXPECT_EQ(told[3], "sandbox resumed");
            EXPECT_EQ(told[4], "sandbox killed: killed by a request");
        },
        false);
}

}  // namespace
}  // namespace gb
