// SPDX-License-Identifier: Apache-2.0
#include "control/rate_limit.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(RateLimit, ABurstAndThenTheRate) {
    RateLimit limit(2, 3);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.take(1000));
    EXPECT_FALSE(limit.take(1000));
    EXPECT_EQ(limit.retry_after_s(), 1);
    EXPECT_FALSE(limit.take(1499));
    EXPECT_TRUE(limit.take(1500));
    EXPECT_FALSE(limit.take(1500));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(limit.take(100'000)) << i;  // never more than the burst
    EXPECT_FALSE(limit.take(100'000));
}

TEST(RateLimit, SlowRatesSayHowLong) {
    RateLimit limit(0.1, 1);
    EXPECT_TRUE(limit.take(1000));
    EXPECT_FALSE(limit.take(1000));
    EXPECT_EQ(limit.retry_after_s(), 10);
    EXPECT_FALSE(limit.take(6000));
    EXPECT_EQ(limit.retry_after_s(), 5);
    RateLimit never(0, 0);
    EXPECT_FALSE(never.take(1));
    EXPECT_EQ(never.retry_after_s(), 3600);
}

TEST(RateLimit, FollowsAChangedConfiguration) {
    RateLimit limit(1, 1);
    EXPECT_TRUE(limit.take(1000));
    limit.configure(1, 5);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(limit.take(1000)) << i;
    EXPECT_FALSE(limit.take(1000));
    limit.configure(1, 1);
    EXPECT_FALSE(limit.take(1000));
    EXPECT_TRUE(limit.take(3000));
    EXPECT_FALSE(limit.take(3000));
}

}  // namespace
}  // namespace gb
