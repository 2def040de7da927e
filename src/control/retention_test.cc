// SPDX-License-Identifier: Apache-2.0
#include "control/retention.h"

#include "base/assert_ok.h"
#include "base/clock.h"
#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

using enum Keeping;

SandboxRecord paused_at(std::int64_t at, std::int64_t warned_ms = 0) {
    SandboxRecord out;
    out.id = "i1";
    out.state = SandboxState::paused;
    out.ends_ms = at;
    out.warned_ms = warned_ms;
    return out;
}

TEST(Retention, WarnsBeforeItRemoves) {
    struct Case {
        std::int64_t paused_ms, warn_ms, warned_ms, now;
        Keeping wanted;
    };
    // Paused at 1000.
    for (const Case& c :
         std::initializer_list<Case>{{100, 30, 0, 1000, keep},
                                     {100, 30, 0, 1069, keep},
                                     {100, 30, 0, 1070, warn},
                                     {100, 30, 0, 9999, warn},  // nobody was told: told first
                                     {100, 30, 1070, 1071, keep},
                                     {100, 30, 1070, 1099, keep},
                                     {100, 30, 1070, 1100, remove},
                                     {100, 30, 1095, 1100, keep},  // told late: the whole time after it
                                     {100, 30, 1095, 1124, keep},
                                     {100, 30, 1095, 1125, remove},
                                     {100, 0, 0, 1099, keep},  // no warnings
                                     {100, 0, 0, 1100, remove},
                                     {100, 0, 1095, 1100, remove},  // one of an earlier configuration
                                     {100, 500, 0, 999, keep},      // the clock was set back
                                     {100, 500, 0, 1000, warn},     // more warning than time: at the pause
                                     {100, 500, 1000, 1099, keep},
                                     {100, 500, 1000, 1100, remove},
                                     {0, 30, 0, 1'000'000'000'000, keep},  // for ever
                                     {0, 30, 1070, 1'000'000'000'000, keep}}) {
        const Retention retention{.paused_ms = c.paused_ms, .warn_ms = c.warn_ms};
        EXPECT_EQ(keeping_of(paused_at(1000, c.warned_ms), retention, c.now), c.wanted)
            << c.paused_ms << ' ' << c.warn_ms << ' ' << c.warned_ms << ' ' << c.now;
    }
}

TEST(Retention, ItIsRemovedWhenTheWarningSaid) {
    const Retention retention{.paused_ms = 100, .warn_ms = 30};
    for (std::int64_t warned : {1070, 1099, 1500}) {
        const std::int64_t said = removal_ms(paused_at(1000), retention, warned);
        EXPECT_EQ(keeping_of(paused_at(1000, warned), retention, said - 1), keep);
        EXPECT_EQ(keeping_of(paused_at(1000, warned), retention, said), remove);
    }
}

TEST(Retention, LooksOftenEnough) {
    using std::chrono::milliseconds;
    constexpr std::int64_t kDayMs = 86'400'000;
    EXPECT_EQ(look_every({.paused_ms = 30 * kDayMs, .warn_ms = 3 * kDayMs}), milliseconds(3'600'000));
    EXPECT_EQ(look_every({.paused_ms = 20'000, .warn_ms = 5'000}), milliseconds(500));
    EXPECT_EQ(look_every({.paused_ms = 20'000, .warn_ms = 0}), milliseconds(2'000));
    EXPECT_EQ(look_every({.paused_ms = 20'000, .warn_ms = 3 * kDayMs}), milliseconds(2'000));
    EXPECT_EQ(look_every({.paused_ms = 1, .warn_ms = 1}), milliseconds(100));
}

class RetentionTest : public SandboxesTest {
  protected:
    static constexpr std::int64_t kHourMs = 3'600'000;
    void SetUp() override {
        retention_ = {.paused_ms = 10 * kHourMs, .warn_ms = 2 * kHourMs};
        SandboxesTest::SetUp();
    }
    awaitable<std::string> paused() {
        auto view = co_await sandboxes_->create(team_, request());
        EXPECT_TRUE(view);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, view->record.id, PauseMode::with_memory));
        co_return view->record.id;
    }
    [[nodiscard]] bool there(const std::string& id) const { return sandboxes_->get(team_, id).has_value(); }
    // Later than the last pause by so many hours.
    awaitable<void> after(std::int64_t hours) {
        co_await sandboxes_->apply_retention(now_ms() + hours * kHourMs);
    }
    int count(std::string_view type) {
        const auto types = events();
        return static_cast<int>(std::ranges::count(types, type));
    }
};

TEST_F(RetentionTest, TellsOnceAndRemovesLater) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await paused();
        co_await after(7);
        EXPECT_EQ(count("expiring"), 0);
        co_await after(8);
        co_await after(9);
        EXPECT_EQ(count("expiring"), 1);
        EXPECT_TRUE(there(id));
        auto logs = store_->logs({.sandbox_id = id, .least_level = "warn"});
        EXPECT_TRUE(logs && logs->size() == 1);
        if (!logs || logs->size() != 1) co_return;
        const LogEntry& entry = logs->front();
        EXPECT_EQ(entry.fields.at("logger"), "sandbox");
        EXPECT_NE(entry.message.find("will be removed at " + entry.fields.at("remove_at")),
                  std::string::npos);
        co_await after(11);
        EXPECT_FALSE(there(id));
        EXPECT_EQ(node_.destroyed, 1);
        EXPECT_TRUE(store_->sandboxes()->empty());
        auto told = store_->events({.team_id = team_.id, .types = {"sandbox.lifecycle.killed"}});
        EXPECT_TRUE(told && told->size() == 1);
        EXPECT_NE(told->front().data_json.find("paused for longer"), std::string::npos)
            << told->front().data_json;
    });
}

TEST_F(RetentionTest, ARestartForgetsNoWarning) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await paused();
        co_await after(8);
        EXPECT_EQ(count("expiring"), 1);
        open();
        co_await after(9);
        EXPECT_EQ(count("expiring"), 1);
        EXPECT_TRUE(there(id));
        co_await after(11);
        EXPECT_FALSE(there(id));
    });
}

TEST_F(RetentionTest, AResumeBeginsAnewAndWhatRunsIsLeftAlone) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await paused();
        co_await after(8);
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
        co_await after(1000);
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        co_await after(7);
        EXPECT_EQ(count("expiring"), 1);
        co_await after(8);
        EXPECT_EQ(count("expiring"), 2);  // once a pause
        EXPECT_TRUE(there(id));
    });
}

// A removal is under way; the next one in the line is woken meanwhile.
TEST_F(RetentionTest, WhatIsWokenWhileOthersAreRemovedStays) {
    team_.plan = "slow";  // has room for three
    ASSERT_OK(store_->update_team(team_));
    run([&]() -> awaitable<void> {
        const std::vector<std::string> ids{co_await paused(), co_await paused(), co_await paused()};
        co_await after(8);
        node_.destroy_delay_ms = 50;
        bool over = false;
        asio::co_spawn(io_, after(20), [&](const std::exception_ptr&) { over = true; });
        while (sandboxes_->counts().in_transition == 0) co_await sleep(1);
        std::vector<std::string> woken;
        for (const std::string& id : ids)
            if ((co_await sandboxes_->connect(team_, id, 60)).has_value()) woken.push_back(id);
        EXPECT_EQ(woken.size(), 2U);
        while (!over) co_await sleep(1);
        for (const std::string& id : woken) EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_EQ(node_.destroyed, 1);
    });
}

TEST_F(RetentionTest, TheLoopLooksByItself) {
    retention_ = {.paused_ms = 400, .warn_ms = 200};
    open();
    run([&]() -> awaitable<void> {
        const std::string id = co_await paused();
        asio::co_spawn(io_, apply_retention(*sandboxes_), [](const std::exception_ptr&) {});
        auto left = [&] { return sandboxes_->counts().paused + sandboxes_->counts().in_transition; };
        while (left() > 0) co_await sleep(10);
        EXPECT_FALSE(there(id));
        EXPECT_EQ(count("expiring"), 1);
        EXPECT_EQ(count("killed"), 1);
    });
}

}  // namespace
}  // namespace gb
