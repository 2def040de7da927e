// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox_metrics.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(SandboxMetrics, OneHundredPercentIsOneProcessor) {
    EXPECT_DOUBLE_EQ(cpu_used_percent({0, 0}, {50, 100}, 1), 50);
    EXPECT_DOUBLE_EQ(cpu_used_percent({100, 1000}, {200, 1200}, 4), 200);
    EXPECT_DOUBLE_EQ(cpu_used_percent({0, 0}, {100, 100}, 2), 200);
}

TEST(SandboxMetrics, CountersWithoutSenseAreZeroOrAllOfIt) {
    EXPECT_DOUBLE_EQ(cpu_used_percent({5, 10}, {6, 10}, 1), 0);  // no time has passed
    EXPECT_DOUBLE_EQ(cpu_used_percent({5, 10}, {6, 9}, 1), 0);   // backwards
    EXPECT_DOUBLE_EQ(cpu_used_percent({5, 10}, {4, 20}, 1), 0);
    EXPECT_DOUBLE_EQ(cpu_used_percent({0, 0}, {500, 100}, 1), 100);  // more than there was
}

MetricPoint point(std::int64_t time_ms, double cpu, std::int64_t mem) {
    return {.sandbox_id = "i",
            .time_ms = time_ms,
            .cpu_count = 1,
            .cpu_used_pct = cpu,
            .mem_used = mem,
            .mem_total = 100};
}

TEST(SandboxMetrics, EachIntervalIsAveragedAtItsLastPoint) {
    const std::vector<MetricPoint> points{point(10'000, 10, 10), point(14'999, 30, 20), point(15'000, 5, 50),
                                          point(31'000, 7, 60)};
    const auto out = averages(points, 5000);
    ASSERT_EQ(out.size(), 3U);
    EXPECT_EQ(out[0].time_ms, 14'999);
    EXPECT_DOUBLE_EQ(out[0].cpu_used_pct, 20);
    EXPECT_EQ(out[0].mem_used, 15);
    EXPECT_EQ(out[0].mem_total, 100);
    EXPECT_EQ(out[1].time_ms, 15'000);
    EXPECT_EQ(out[2].time_ms, 31'000);
    EXPECT_TRUE(averages({}, 5000).empty());
}

TEST(SandboxMetrics, HugeNumbersDoNotOverflow) {
    const std::int64_t huge = std::int64_t{1} << 53;
    const std::vector<MetricPoint> points(5000, point(1000, 100, huge));
    EXPECT_EQ(averages(points, 5000)[0].mem_used, huge);
}

}  // namespace
}  // namespace gb
