// SPDX-License-Identifier: Apache-2.0
// How many descriptors this process may have at a time (RLIMIT_NOFILE).
#pragma once

#include <cstdint>

namespace gb {

[[nodiscard]] std::uint64_t open_files_limit();

// Raises the soft limit to the hard one: it is low by default for programs that use select(), and ours do
// not. Children inherit it.
void raise_open_files();

}  // namespace gb
