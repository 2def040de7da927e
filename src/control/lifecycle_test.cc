// SPDX-License-Identifier: Apache-2.0
#include "control/lifecycle.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

namespace gb {
namespace {

using enum SandboxState;
constexpr std::array kAll{creating, running, pausing, paused, resuming, killing};

TEST(Lifecycle, OnlyTheListedMovesAreAllowed) {
    const std::array<std::pair<SandboxState, SandboxState>, 10> allowed{{{creating, running},
                                                                        {creating, killing},
                                                                        {running, pausing},
                                                                        {running, killing},
                                                                        {pausing, paused},
                                                                        {pausing, running},
                                                                        {paused, resuming},
                                                                        {paused, killing},
                                                                        {resuming, running},
                                                                        {resuming, paused}}};
    for (SandboxState from : kAll)
        for (SandboxState to : kAll) {
            const bool listed = std::ranges::find(allowed, std::pair(from, to)) != allowed.end();
            EXPECT_EQ(may_move(from, to), listed) << to_string(from) << " to " << to_string(to);
        }
}

TEST(Lifecycle, NothingLeadsOutOfKillingOrBackToCreating) {
    for (SandboxState any : kAll) {
        EXPECT_FALSE(may_move(killing, any));
        EXPECT_FALSE(may_move(any, creating));
    }
}

TEST(Lifecycle, OnlyRunningAndPausedAreAtRestAndOnlyPausedTakesNoPlace) {
    for (SandboxState state : kAll) {
        EXPECT_EQ(is_transition(state), state != running && state != paused);
        EXPECT_EQ(takes_place(state), state != paused);
    }
}

}  // namespace
}  // namespace gb
