// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox as one table: which state may follow which. Pure.
//
//   creating ─► running ◄─► pausing ─► paused ─► resuming ─► running
//       └──────────┴───────────────────┴──► killing ─► gone
//
// creating, pausing, resuming and killing end by themselves: who meets a sandbox in one of them waits, or is told to
// come again.
#pragma once

#include <string_view>

#include "store/records.h"

namespace gb {

// True when a sandbox in `from` may go to `to`. Everything not listed is refused.
bool may_move(SandboxState from, SandboxState to);
bool is_transition(SandboxState state);  // ends by itself
// Whether it counts against the number of sandboxes that a team may run.
bool takes_place(SandboxState state);
std::string_view to_string(SandboxState state);

}  // namespace gb
