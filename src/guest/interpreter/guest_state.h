// SPDX-License-Identifier: Apache-2.0
// What the agent tells the programs of this sandbox through files: which restore of the machine this is, and
// the sandbox's environment variables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "guest/interpreter/hidden_call.h"

namespace gb::interpreter {

struct GuestState {
    std::uint64_t generation = 0;  // grows with every restore from a snapshot; 0 before the first
    EnvMap env;

    bool operator==(const GuestState&) const = default;
};

// Reads <run_dir>/generation and <run_dir>/envs.json. A missing file is 0 or empty; a damaged one is logged
// and counts as missing.
GuestState read_guest_state(const std::filesystem::path& run_dir);

// The call that brings a kernel from `applied` (none: freshly started) to `now`; nothing when there is
// nothing to do.
std::optional<HiddenCall> guest_state_call(const std::optional<GuestState>& applied, const GuestState& now);

}  // namespace gb::interpreter
