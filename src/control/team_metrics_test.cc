// SPDX-License-Identifier: Apache-2.0
#include "control/team_metrics.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

SandboxRun run(std::int64_t from, std::int64_t to) {
    SandboxRun out;
    out.started_ms = from;
    out.ended_ms = to;
    return out;
}

TEST(TeamMetrics, CountsWhatRanAtOnceInEachInterval) {
    const std::vector<SandboxRun> runs{run(1000, 12'000), run(2000, 3000), run(2500, 0)};
    const auto points = team_points(runs, {0, 60'000}, 21'000);
    ASSERT_EQ(points.size(), 5U);
    EXPECT_EQ(points[0].time_ms, 0);
    EXPECT_EQ(points[0].concurrent, 3);
    EXPECT_DOUBLE_EQ(points[0].start_rate, 0.6);
    EXPECT_EQ(points[1].concurrent, 2);
    EXPECT_EQ(points[2].concurrent, 2);
    EXPECT_EQ(points[3].concurrent, 1);
    EXPECT_EQ(points[4].concurrent, 1);
    EXPECT_EQ(points[4].time_ms, 20'000);
    EXPECT_EQ(most_concurrent(points).concurrent, 3);
    EXPECT_DOUBLE_EQ(quickest_start(points).start_rate, 0.6);
}

TEST(TeamMetrics, ARunThatEndsWhenTheNextStartsIsNotBesideIt) {
    const std::vector<SandboxRun> runs{run(0, 1000), run(1000, 2000)};
    EXPECT_EQ(most_concurrent(team_points(runs, {0, 5000}, 0)).concurrent, 1);
}

TEST(TeamMetrics, NothingOutsideOfTheRange) {
    const std::vector<SandboxRun> runs{run(0, 1000), run(9000, 10'000)};
    EXPECT_TRUE(team_points(runs, {1000, 9000}, 0).empty());
    EXPECT_EQ(most_concurrent({}).concurrent, 0);
    const auto points = team_points(std::vector<SandboxRun>{run(0, 10'000)}, {2000, 3000}, 0);
    ASSERT_EQ(points.size(), 1U);
    EXPECT_EQ(points[0].time_ms, 2000);
    EXPECT_DOUBLE_EQ(points[0].start_rate, 0);
}

TEST(TeamMetrics, LongRangesHaveLongIntervals) {
    EXPECT_EQ(metric_step_ms({0, 3'600'000}), 5000);
    EXPECT_GT(metric_step_ms({0, 24 * 3'600'000LL}), 60'000);
    EXPECT_LE(7 * 24 * 3'600'000LL / metric_step_ms({0, 7 * 24 * 3'600'000LL}), 720);
}

}  // namespace
}  // namespace gb
