// SPDX-License-Identifier: Apache-2.0
#include "node/engine_trial.h"

#include <stdlib.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

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

// Boots real machines: needs root, QEMU, and a guest kernel in the cache or the network.
TEST(EngineTrial, AMachineDoesAllThatSandboxesNeed) {
    const char* guest = ::getenv("GLOVEBOX_TEST_GUEST_DIR");
    if (::geteuid() != 0 || guest == nullptr)
        GTEST_SKIP() << "needs root and GLOVEBOX_TEST_GUEST_DIR, the folder of glovebox-init";
    NodeOptions options;
    options.data_dir = fs::temp_directory_path() / ("glovebox-trial-" + random_id(8));
    options.guest_dir = guest;
    if (const char* cache = ::getenv("GLOVEBOX_CACHE_DIR")) options.cache_dir = cache;
    const EngineTrial trial = try_engine(options, {});
    for (const TrialStep& step : trial.steps)
        EXPECT_EQ(step.outcome, TrialStep::Outcome::passed) << step.name << ": " << step.error;
    EXPECT_TRUE(trial.passed());
    EXPECT_FALSE(trial.accelerator.reason.empty());
    EXPECT_FALSE(fs::exists(options.data_dir / "doctor/run"));
    (void)remove_tree(options.data_dir);
}

}  // namespace
}  // namespace gb
