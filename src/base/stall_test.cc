// SPDX-License-Identifier: Apache-2.0
#include "base/stall.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

using namespace std::chrono_literals;

class Stall : public ::testing::Test {
  protected:
    StallLimit limit(Patience patience) {
        return StallLimit(patience, [this] { return now_; });
    }
    // Time passes, with a look every second.
    static void pass(StallLimit& limit, std::int64_t& now, std::chrono::seconds time) {
        for (auto i = 0s; i < time && !limit.over(); ++i) now += 1000;
    }
    std::int64_t now_ = 1'000'000;
};

TEST_F(Stall, SlowIsNotBroken) {
    StallLimit wait = limit({60s, 10h});
    for (int step = 0; step < 500; ++step) {
        pass(wait, now_, 59s);
        EXPECT_FALSE(wait.over());
        wait.moved();
    }
    pass(wait, now_, 60s);
    EXPECT_TRUE(wait.over());
    EXPECT_EQ(wait.error("the guest").error().message, "the guest: nothing moved for 60 s");
    EXPECT_EQ(wait.error("the guest").error().code, ErrorCode::deadline_exceeded);
}

TEST_F(Stall, WhatMovesForEverEndsAtTheCeiling) {
    StallLimit wait = limit({60s, 2h});
    int steps = 0;
    for (; !wait.over(); ++steps) {
        now_ += 1000;
        wait.moved();
    }
    EXPECT_EQ(steps, 7200);
    EXPECT_EQ(wait.error("the guest").error().message,
              "the guest: not done within 2 hours, though something moved all the time");
}

TEST_F(Stall, OnlyAChangeMoves) {
    StallLimit wait = limit({10s, 1h});
    wait.watch("console", 17);
    pass(wait, now_, 9s);
    wait.watch("console", 17);
    wait.watch("health", 1);  // the first look at something is no movement
    EXPECT_FALSE(wait.over());
    wait.watch("console", 18);
    pass(wait, now_, 9s);
    EXPECT_FALSE(wait.over());
    wait.watch("health", 2);
    pass(wait, now_, 9s);
    wait.watch("health", 2);
    now_ += 1000;
    EXPECT_TRUE(wait.over());
}

TEST_F(Stall, WhoDidNotLookCannotTell) {
    StallLimit wait = limit({60s, 10h});
    now_ += 3'600'000;  // we were stopped, or the host slept
    EXPECT_FALSE(wait.over());
    pass(wait, now_, 54s);
    EXPECT_FALSE(wait.over());
    pass(wait, now_, 2s);
    EXPECT_TRUE(wait.over());
}

TEST_F(Stall, AFixedLimitIsFixed) {
    StallLimit wait = limit(10s);
    now_ += 4000;
    wait.moved();
    now_ += 4000;
    wait.moved();
    EXPECT_FALSE(wait.over());
    EXPECT_EQ(wait.next_look(1h), 2s);
    now_ += 2000;
    wait.moved();
    EXPECT_TRUE(wait.over());
    EXPECT_EQ(wait.error("x").error().message, "x: no answer within 10 s");
}

TEST_F(Stall, TheNextLookIsSoonEnough) {
    StallLimit wait = limit({60s, 10h});
    EXPECT_EQ(wait.next_look(), 1s);
    pass(wait, now_, 59s);
    now_ += 600;
    EXPECT_EQ(wait.next_look(), 400ms);
    now_ += 600;
    EXPECT_EQ(wait.next_look(), 0ms);
}

}  // namespace
}  // namespace gb
