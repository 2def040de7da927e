// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "node/engine_trial.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

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
