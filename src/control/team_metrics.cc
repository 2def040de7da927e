// SPDX-License-Identifier: Apache-2.0
#include "control/team_metrics.h"

#include <algorithm>
#include <array>
#include <map>

namespace gb {

std::int64_t metric_step_ms(const TimeRange& range) {
    constexpr std::array<std::int64_t, 7> kSteps{5'000, 30'000, 60'000, 300'000, 900'000, 3'600'000, 86'400'000};
    constexpr std::int64_t kMostPoints = 720;
    const std::int64_t length = std::max<std::int64_t>(range.to_ms - range.from_ms, 0);
    for (std::int64_t step : kSteps)
        if (length / step <= kMostPoints) return step;
    return kSteps.back();
}

std::vector<TeamPoint> team_points(std::span<const SandboxRun> runs, const TimeRange& range, std::int64_t now_ms) {
    const std::int64_t step = metric_step_ms(range);
    auto interval = [&](std::int64_t time) { return (time - range.from_ms) / step; };
    // How the number of running sandboxes changes, in the order of time; ends before starts of the same moment.
    std::vector<std::pair<std::int64_t, int>> changes;
    std::map<std::int64_t, TeamPoint> points;
    for (const SandboxRun& run : runs) {
        const std::int64_t end = run.ended_ms != 0 ? run.ended_ms : now_ms;
        if (run.started_ms >= range.to_ms || end <= range.from_ms) continue;
        changes.emplace_back(std::max(run.started_ms, range.from_ms), 1);
        changes.emplace_back(std::min(end, range.to_ms), -1);
        if (run.started_ms >= range.from_ms)
            points[interval(run.started_ms)].start_rate += 1000.0 / static_cast<double>(step);
    }
    std::ranges::sort(changes);
    int concurrent = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        concurrent += changes[i].second;
        const bool last_of_moment = i + 1 == changes.size() || changes[i + 1].first != changes[i].first;
        if (!last_of_moment || concurrent == 0) continue;
        // This number holds until the next change.
        for (std::int64_t at = interval(changes[i].first); at <= interval(changes[i + 1].first - 1); ++at)
            points[at].concurrent = std::max(points[at].concurrent, concurrent);
    }
    std::vector<TeamPoint> out;
    for (auto& [number, point] : points) {
        point.time_ms = range.from_ms + number * step;
        out.push_back(point);
    }
    return out;
}

TeamPoint most_concurrent(std::span<const TeamPoint> points) {
    auto found = std::ranges::max_element(points, {}, &TeamPoint::concurrent);
    return found == points.end() ? TeamPoint{} : *found;
}

TeamPoint quickest_start(std::span<const TeamPoint> points) {
    auto found = std::ranges::max_element(points, {}, &TeamPoint::start_rate);
    return found == points.end() ? TeamPoint{} : *found;
}

}  // namespace gb
