// The life of a sandbox as one table: which state may follow which. Pure.
#pragma once

#include <string_view>

#include "store/records.h"

namespace gb {

// True when a sandbox in `from` may go to `to`. Everything not listed is refused.
bool may_move(SandboxState from, SandboxState to);
std::string_view to_string(SandboxState state);

}  // namespace gb
