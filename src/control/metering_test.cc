// SPDX-License-Identifier: Apache-2.0
#include "control/metering.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

constexpr std::int64_t kHour = 3'600'000;

SandboxRun run(std::int64_t from, std::int64_t to, int cpus = 2, int memory = 512, std::string sandbox = "i1") {
    return {"r", std::move(sandbox), "team", "tid", cpus, memory, from, to, to};
}

TEST(Metering, TwoProcessorsForThreeHoursComeOutToTheCent) {
    const Usage usage = usage_of(run(1000, 1000 + 3 * kHour), 0, INT64_MAX, 0);
    EXPECT_EQ(usage.vcpu_seconds(), 21'600);
    EXPECT_EQ(dollars(usage.vcpu_cost_nano({})), "0.3024");
    EXPECT_EQ(usage.gib_seconds(), 5400);
    EXPECT_EQ(dollars(usage.memory_cost_nano({})), "0.0243");
}

TEST(Metering, TheContractsHourlyPrices) {
    const Usage small = usage_of(run(0, kHour, 2, 512), 0, INT64_MAX, 0);
    EXPECT_EQ(dollars(small.vcpu_cost_nano({}) + small.memory_cost_nano({})), "0.1089");
    const Usage large = usage_of(run(0, kHour, 8, 4096), 0, INT64_MAX, 0);
    EXPECT_EQ(dollars(large.vcpu_cost_nano({}) + large.memory_cost_nano({})), "0.4680");
}

TEST(Metering, OnlyThePartInsideTheRangeCounts) {
    EXPECT_EQ(usage_of(run(1000, 5000), 2000, 4000, 0).run_ms, 2000);
    EXPECT_EQ(usage_of(run(1000, 5000), 5000, 9000, 0).run_ms, 0);
    EXPECT_EQ(usage_of(run(1000, 5000), 0, 1000, 0).run_ms, 0);
    EXPECT_EQ(usage_of(run(1000, 0), 0, INT64_MAX, 4000).run_ms, 3000);
}

TEST(Metering, APauseBetweenTwoRunsIsFree) {
    const std::vector<SandboxRun> runs{run(0, 1000), run(60'000, 61'000), run(0, 500, 1, 1024, "i2"), run(7, 7)};
    const auto rows = usage_by_sandbox(runs, 0, INT64_MAX, 100'000);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].usage.run_ms, 2000);
    EXPECT_EQ(rows[0].usage.runs, 2);
    EXPECT_EQ(rows[1].usage.vcpu_ms, 500);
}

TEST(Metering, MillionsOfShortRunsDoNotLoseFractions) {
    Usage sum;
    for (int i = 0; i < 1'000'000; ++i) sum += usage_of(run(0, 1, 1, 128), 0, INT64_MAX, 0);
    EXPECT_EQ(dollars(sum.vcpu_cost_nano({})), "0.0140");
    EXPECT_EQ(dollars(sum.memory_cost_nano({})), "0.0005625");
}

TEST(Metering, TheTableHasAHeaderAndOneLineASandbox) {
    const std::vector<SandboxRun> runs{run(0, 3 * kHour)};
    EXPECT_EQ(usage_csv(usage_by_sandbox(runs, 0, INT64_MAX, 0), {}),
              "team_id,sandbox_id,template_id,runs,seconds,vcpu_seconds,gib_seconds,vcpu_usd,memory_usd,total_usd\r\n"
              "team,i1,tid,1,10800.000,21600.000,5400.000,0.3024,0.0243,0.3267\r\n");
}

TEST(Dollars, HaveAtLeastFourDecimals) {
    EXPECT_EQ(dollars(0), "0.0000");
    EXPECT_EQ(dollars(1), "0.000000001");
    EXPECT_EQ(dollars(12'500'000'000), "12.5000");
}

}  // namespace
}  // namespace gb
