// SPDX-License-Identifier: Apache-2.0
// How many sandboxes a team ran at once and how quickly it started them, from its runs. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/records.h"

namespace gb {

struct TeamPoint {
    std::int64_t time_ms = 0;  // start of the interval
    int concurrent = 0;        // the most at once within it
    double start_rate = 0;     // starts a second
};

struct TimeRange {
    std::int64_t from_ms = 0, to_ms = 0;
};

// Intervals that fit a range: 5 s below an hour, then longer, so that there are at most about 720 points.
std::int64_t metric_step_ms(const TimeRange& range);

// Intervals in which nothing ran and nothing started are left out.
std::vector<TeamPoint> team_points(std::span<const SandboxRun> runs, const TimeRange& range, std::int64_t now_ms);

// The interval with the most; nothing: no run in the range.
TeamPoint most_concurrent(std::span<const TeamPoint> points);
TeamPoint quickest_start(std::span<const TeamPoint> points);

}  // namespace gb
