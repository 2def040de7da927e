// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/pace.h"

#include <deque>

#include <gtest/gtest.h>

namespace gb::agent {
namespace {

using namespace std::chrono_literals;

const Pace::Clock::time_point kBegin{1000s};

// How often a program is read that prints a line every `line`, in `whole`; and how long a line waits at most.
std::pair<int, Pace::Clock::duration> reads(Pace& pace, Pace::Clock::duration line, Pace::Clock::duration whole) {
    int count = 0;
    Pace::Clock::duration longest{};
    auto first_unread = kBegin + line;
    while (first_unread < kBegin + whole) {
        const auto now = std::max(first_unread, pace.next());
        longest = std::max(longest, now - first_unread);
        pace.read(now, false);
        ++count;
        first_unread += line * ((now - first_unread) / line + 1);
    }
    return {count, longest};
}

TEST(Pace, WhatPrintsNowAndThenIsReadAtOnce) {
    Pace pace;
    EXPECT_FALSE(pace.pauses(kBegin));
    EXPECT_EQ(reads(pace, 50ms, 10s), std::pair(199, Pace::Clock::duration::zero()));
}

TEST(Pace, LinesOfAFloodGoTogether) {
    Pace pace;
    const auto [count, wait] = reads(pace, 100us, 10s);
    EXPECT_LT(count, 10s / Pace::longest() + 10);
    EXPECT_GT(count, 10s / Pace::longest() - 10);
    EXPECT_LE(wait, Pace::longest());
    EXPECT_LE(Pace::longest(), 20ms);  // nobody else prints
}

TEST(Pace, AfterASilenceAndAfterInputItIsReadAtOnce) {
    Pace pace;
    for (int i = 0; i < 20; ++i) pace.read(kBegin, false);
    EXPECT_TRUE(pace.pauses(kBegin + 10ms));
    pace.read(kBegin + 1s, false);
    EXPECT_FALSE(pace.pauses(kBegin + 1s + 2ms));
    for (int i = 0; i < 20; ++i) pace.read(kBegin + 1s, false);
    pace.reset();
    EXPECT_FALSE(pace.pauses(kBegin + 1s));
}

TEST(Pace, WhatFillsAReadIsReadOn) {
    Pace pace;
    for (int i = 0; i < 20; ++i) pace.read(kBegin, false);
    EXPECT_TRUE(pace.pauses(kBegin));
    pace.read(kBegin, true);
    EXPECT_FALSE(pace.pauses(kBegin));
}

TEST(Pace, TheMorePrintTheLongerItIsUpToALimit) {
    const auto alone = Pace::longest();
    {
        std::deque<Pace> many(1000);
        for (Pace& pace : many)
            for (int i = 0; i < 20; ++i) pace.read(kBegin, false);
        EXPECT_GT(Pace::longest(), alone);
        EXPECT_LE(Pace::longest(), 250ms);
        EXPECT_LE(many.front().next() - kBegin, Pace::longest());
    }
    EXPECT_EQ(Pace::longest(), alone);  // they have ended
}

}  // namespace
}  // namespace gb::agent
