// SPDX-License-Identifier: Apache-2.0
// GET /metrics (contract 3.6): what the machine uses, from /proc and the root file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::agent {

struct CpuTimes {
    std::uint64_t busy = 0;  // clock ticks, all processors together
    std::uint64_t total = 0;
};
std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat);
// 0 to 100 over all processors, between two readings.
double cpu_used_percent(const CpuTimes& before, const CpuTimes& after);

struct MemoryUse {
    std::uint64_t total = 0, used = 0, cache = 0;  // bytes; what could be freed at once is not "used"
};
MemoryUse parse_memory(std::string_view proc_meminfo);

Result<CpuTimes> read_cpu_times();
// The whole answer.
Result<std::string> metrics_json(double cpu_used_pct);

}  // namespace gb::agent
