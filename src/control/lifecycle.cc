// SPDX-License-Identifier: Apache-2.0
#include "control/lifecycle.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gb {
namespace {

using enum SandboxState;

// "gone" is the absence of a sandbox: what is killed is removed, so no row leads out of killing.
constexpr std::array<std::pair<SandboxState, SandboxState>, 10> kMoves{{
    {creating, running},
    {creating, killing},
    {running, pausing},
    {running, killing},
    {pausing, paused},
    {pausing, running},  // the pause failed: nothing was lost
    {paused, resuming},
    {paused, killing},
    {resuming, running},
    {resuming, paused},  // the resume failed
}};

}  // namespace

bool may_move(SandboxState from, SandboxState to) {
    return std::ranges::find(kMoves, std::pair(from, to)) != kMoves.end();
}

bool is_transition(SandboxState state) {
    return state != running && state != paused;
}

bool takes_place(SandboxState state) {
    return state != paused;
}

std::string_view to_string(SandboxState state) {
    switch (state) {
        case creating:
            return "creating";
        case running:
            return "running";
        case pausing:
            return "pausing";
        case paused:
            return "paused";
        case resuming:
            return "resuming";
        case killing:
            return "killing";
    }
    return "killing";
}

}  // namespace gb
