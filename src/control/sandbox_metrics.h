// SPDX-License-Identifier: Apache-2.0
// What becomes of a guest's counters: percentages, and averages over the intervals of a range. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/records.h"

namespace gb {

struct CpuTicks {
    std::uint64_t busy = 0, total = 0;  // of all processors together
};
// Between two readings; 100 is one processor. Counters that make no sense are 0.
double cpu_used_percent(const CpuTicks& before, const CpuTicks& after, int cpu_count);

// One point for each interval of `step_ms` in which there is one: its average, at the time of its last point.
// `points` are in the order of time.
std::vector<MetricPoint> averages(std::span<const MetricPoint> points, std::int64_t step_ms);

}  // namespace gb
