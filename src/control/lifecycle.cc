#include "control/lifecycle.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gb {
namespace {

using enum SandboxState;

// "gone" is the absence of a sandbox: what is killed is removed, so no row leads out of killing.
constexpr std::array<std::pair<SandboxState, SandboxState>, 3> kMoves{{
    {creating, running},
    {creating, killing},
    {running, killing},
}};

}  // namespace

bool may_move(SandboxState from, SandboxState to) {
    return std::ranges::find(kMoves, std::pair(from, to)) != kMoves.end();
}

std::string_view to_string(SandboxState state) {
    switch (state) {
        case creating:
            return "creating";
        case running:
            return "running";
        case killing:
            return "killing";
    }
    return "killing";
}

}  // namespace gb
