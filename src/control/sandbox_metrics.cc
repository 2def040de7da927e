// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox_metrics.h"

#include <algorithm>

namespace gb {

double cpu_used_percent(const CpuTicks& before, const CpuTicks& after, int cpu_count) {
    if (after.total <= before.total || after.busy < before.busy) return 0;
    const double share =
        static_cast<double>(after.busy - before.busy) / static_cast<double>(after.total - before.total);
    return std::min(share, 1.0) * 100 * cpu_count;
}

namespace {

MetricPoint average(std::span<const MetricPoint> points) {
    MetricPoint out = points.back();
    // Doubles: a hostile guest's numbers must not overflow.
    double cpu = 0, used = 0, cache = 0, disk = 0;
    for (const MetricPoint& point : points) {
        cpu += point.cpu_used_pct;
        used += static_cast<double>(point.mem_used);
        cache += static_cast<double>(point.mem_cache);
        disk += static_cast<double>(point.disk_used);
    }
    const auto count = static_cast<double>(points.size());
    out.cpu_used_pct = cpu / count;
    out.mem_used = static_cast<std::int64_t>(used / count);
    out.mem_cache = static_cast<std::int64_t>(cache / count);
    out.disk_used = static_cast<std::int64_t>(disk / count);
    return out;
}

}  // namespace

std::vector<MetricPoint> averages(std::span<const MetricPoint> points, std::int64_t step_ms) {
    std::vector<MetricPoint> out;
    while (!points.empty()) {
        const std::int64_t interval = points.front().time_ms / step_ms;
        const auto end = std::ranges::find_if(
            points, [&](const MetricPoint& point) { return point.time_ms / step_ms != interval; });
        const auto count = static_cast<std::size_t>(end - points.begin());
        out.push_back(average(points.first(count)));
        points = points.subspan(count);
    }
    return out;
}

}  // namespace gb
