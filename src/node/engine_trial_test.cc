// SPDX-License-Identifier: Apache-2.0
#include "node/engine_trial.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(EngineTrial, ReadsWholeRoundsOnly) {
    EXPECT_FALSE(parse_trial_rounds(""));
    EXPECT_FALSE(parse_trial_rounds("glovebox-trial: 1 200 ok"));
    EXPECT_FALSE(parse_trial_rounds("glovebox-trial: \nglovebox-trial: x 1 ok\nglovebox-trial: 4\n"));
    const auto rounds = parse_trial_rounds(
        "[    0.1] Linux\r\nglovebox-trial: 1 200 ok\r\n[  0.3] noise glovebox-trial: 2 230 ok\nglovebox-trial: 3 2");
    ASSERT_TRUE(rounds);
    EXPECT_EQ(rounds->last, 2U);
    EXPECT_EQ(rounds->guest_ms, 230);
    EXPECT_EQ(rounds->trouble, "");
}

TEST(EngineTrial, WhatWasWrongOnceStaysWrong) {
    const auto rounds =
        parse_trial_rounds("glovebox-trial: 1 200 memory\nglovebox-trial: 2 230 disk\nglovebox-trial: 3 260 ok\n");
    ASSERT_TRUE(rounds);
    EXPECT_EQ(rounds->last, 3U);
    EXPECT_EQ(rounds->trouble, "memory");
}

}  // namespace
}  // namespace gb
