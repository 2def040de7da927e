// SPDX-License-Identifier: Apache-2.0
// Tries everything that a sandbox's machine has to be able to, with a small guest and without any template: boots it,
// captures it, restores, pauses, resumes and forks it, and looks each time whether its memory, disk and clock are as
// they were. For `glovebox doctor --engine`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/microvm/accelerator_probe.h"
#include "image/progress.h"
#include "node/machinery.h"

namespace gb {

struct TrialStep {
    enum class Outcome { passed, failed, not_tried };
    std::string name;
    Outcome outcome = Outcome::not_tried;
    std::int64_t ms = 0;
    std::string detail;  // numbers of this step
    std::string error;
};

struct EngineTrial {
    engine::AcceleratorChoice accelerator;
    std::string vmm_version, guest_kernel;  // empty: never got so far
    std::vector<TrialStep> steps;           // all there are, in their order; after a failure none is tried
    [[nodiscard]] bool passed() const;
};

// Needs root, and the network when no guest kernel is in the cache. Blocks, for some ten seconds under emulation. One
// trial in a data folder at a time. Leaves nothing but a lock and an id in <data_dir>/doctor, and the kernel in the cache.
EngineTrial try_engine(const NodeOptions& options, const image::ProgressFn& progress);

// The last whole round that the guest told of (guest/init/trial.h), and the first thing that was wrong in any; nothing
// when there is no whole line yet. Pure.
struct TrialRounds {
    std::uint64_t last = 0;
    std::int64_t guest_ms = 0;  // since its boot, at that round
    std::string trouble;
};
std::optional<TrialRounds> parse_trial_rounds(std::string_view console);

}  // namespace gb
