// SPDX-License-Identifier: Apache-2.0
// How much memory the host could give away now.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gb {

// MemAvailable of /proc/meminfo: free memory and what caches would give back, in MiB.
Result<std::uint64_t> available_memory_mib();

}  // namespace gb
