// SPDX-License-Identifier: Apache-2.0
// Pseudo-terminals.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::agent {

struct TerminalSize {
    std::uint32_t cols = 80;
    std::uint32_t rows = 24;
};

struct Terminal {
    UniqueFd master;  // the agent's end
    UniqueFd slave;   // the program's end, blocking
};

// Both ends close on exec. The slave belongs to `owner` (and `group`, usually "tty") as after a login, and
// takes input as UTF-8, so that erasing a character erases all its bytes.
Result<Terminal> open_terminal(const TerminalSize& size, uid_t owner, gid_t group);

// Tells the programs on it (SIGWINCH).
Status resize_terminal(int master, const TerminalSize& size);

}  // namespace gb::agent
