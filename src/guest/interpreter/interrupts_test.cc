// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/interrupts.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

using Step = InterruptSchedule::Step;

TEST(InterruptSchedule, AtOnceThenRarerThenGivesUp) {
    InterruptSchedule schedule;
    EXPECT_EQ(schedule.next(5'000), Step::interrupt);
    EXPECT_EQ(schedule.until_next(5'000), std::chrono::milliseconds(1'000));
    EXPECT_EQ(schedule.next(5'500), Step::wait);
    EXPECT_EQ(schedule.next(6'000), Step::interrupt);
    EXPECT_EQ(schedule.next(7'999), Step::wait);
    EXPECT_EQ(schedule.next(8'000), Step::interrupt);
    EXPECT_EQ(schedule.until_next(8'000), std::chrono::milliseconds(4'000));
    EXPECT_EQ(schedule.next(65'000), Step::give_up);
}

}  // namespace
}  // namespace gb::interpreter
