// SPDX-License-Identifier: Apache-2.0
// How long QEMU is waited for. These decide only when something is broken: a loaded host makes QEMU's start ten times slower,
// and QEMU at work is seen to be. The second number is for a VMM that a guest has taken over: it can keep its machine's lock
// so long.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/stall.h"

namespace gb::engine {

inline constexpr Patience kCommandLimit{std::chrono::seconds(30), std::chrono::minutes(10)};
// Waits for the disk's requests: a slow disk must not cost a sandbox, and after a limit the monitor is of no use any more.
inline constexpr Patience kStopLimit{std::chrono::seconds(120), std::chrono::minutes(30)};
// Device state without memory is tens of KiB. A VMM that writes more is not to be believed.
inline constexpr std::size_t kMaxStateBytes = std::size_t{64} << 20;

}  // namespace gb::engine
