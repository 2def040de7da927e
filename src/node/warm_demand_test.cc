// SPDX-License-Identifier: Apache-2.0
#include "node/warm_demand.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

using namespace std::chrono_literals;
using Time = WarmDemand::Time;

TEST(WarmDemand, HalfIsForgottenInAMinute) {
    const Time start = Time() + 1h;
    WarmDemand demand;
    EXPECT_EQ(demand.at(start), 0);
    demand.add(start);
    EXPECT_DOUBLE_EQ(demand.at(start), 1);
    EXPECT_DOUBLE_EQ(demand.at(start + 60s), 0.5);
    EXPECT_DOUBLE_EQ(demand.at(start + 120s), 0.25);
    demand.add(start + 120s);
    EXPECT_DOUBLE_EQ(demand.at(start + 120s), 1.25);
    EXPECT_DOUBLE_EQ(demand.at(start + 180s), 0.625);
    EXPECT_LT(demand.at(start + 24h), 1e-9);
}

TEST(WarmDemand, TimesOutOfOrderTakeNothingBack) {
    const Time start = Time() + 1h;
    WarmDemand demand;
    demand.add(start + 1s);
    demand.add(start);
    EXPECT_DOUBLE_EQ(demand.at(start), 2);
    EXPECT_DOUBLE_EQ(demand.at(start + 1s), 2);
    EXPECT_LT(demand.at(start + 2s), 2);
}

TEST(WarmDemand, ASteadyRateComesToABoundedDemand) {
    const Time start = Time() + 1h;
    WarmDemand demand;
    for (int i = 0; i < 200; ++i) demand.add(start + i * 30s);
    const double at_the_end = demand.at(start + 199 * 30s);
    EXPECT_GT(at_the_end, 3.0);
    EXPECT_LT(at_the_end, 4.0);
}

TEST(WarmWanted, IsTheDemandWithinTheLimits) {
    struct Case {
        double demand;
        WarmLimits limits;
        std::size_t wanted;
    };
    for (const Case& c : {
             Case{0, {0, 4}, 0},
             Case{1, {0, 4}, 1},
             Case{0.5, {0, 4}, 1},
             Case{0.26, {0, 4}, 1},
             Case{0.25, {0, 4}, 0},
             Case{1.25, {0, 4}, 1},
             Case{1.26, {0, 4}, 2},
             Case{4, {0, 4}, 4},
             Case{1e9, {0, 4}, 4},
             Case{1e300, {0, 1000}, 1000},
             Case{0, {2, 4}, 2},
             Case{1, {2, 4}, 2},
             Case{3, {2, 4}, 3},
             Case{3, {0, 0}, 0},
             Case{0, {0, 0}, 0},
             Case{0, {3, 0}, 0},  // 0 means none at all
             Case{0, {6, 4}, 4},
             Case{9, {6, 4}, 4},
         }) {
        EXPECT_EQ(warm_wanted(c.demand, c.limits), c.wanted)
            << c.demand << " in " << c.limits.least << " to " << c.limits.most;
    }
}

TEST(WarmOptions, ATemplateMayHaveLimitsOfItsOwn) {
    WarmOptions options;
    EXPECT_FALSE(options.any());
    options.templates["base"] = {1, 8};
    EXPECT_TRUE(options.any());
    EXPECT_EQ(options.of("base"), (WarmLimits{1, 8}));
    EXPECT_EQ(options.of("other"), WarmLimits{});
    options.standard = {0, 4};
    options.templates["base"] = {0, 0};
    EXPECT_TRUE(options.any());
    EXPECT_EQ(options.of("other"), (WarmLimits{0, 4}));
}

}  // namespace
}  // namespace gb
