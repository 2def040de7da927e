// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(Clock, WritesRfc3339WithMilliseconds) {
    EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(rfc3339(1'700'000'000'123), "2023-11-14T22:13:20.123Z");
    EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59.999Z");
}

TEST(Clock, ReadsWhatItWrites) {
    for (std::int64_t t : {0LL, 1'700'000'000'123LL, 4'102'444'800'000LL}) EXPECT_EQ(parse_rfc3339(rfc3339(t)), t);
}

TEST(Clock, ReadsOffsetsAndFractions) {
    EXPECT_EQ(parse_rfc3339("2023-11-14T23:13:20+01:00"), 1'700'000'000'000);
    EXPECT_EQ(parse_rfc3339("2023-11-14T23:13:20 01:00"), 1'700'000'000'000);
    EXPECT_EQ(parse_rfc3339("2023-11-14T22:13:20.123456789Z"), 1'700'000'000'123);
    EXPECT_EQ(parse_rfc3339("2023-11-14T22:13:20.1Z"), 1'700'000'000'100);
}

TEST(Clock, RefusesOtherText) {
    for (auto text : {"", "now", "2023-11-14", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20.Z",
                      "2023-11-14T22:13:20Zjunk"})
        EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
}

TEST(Clock, SaysDurationsForPeople) {
    constexpr std::int64_t kDayMs = 86'400'000;
    EXPECT_EQ(duration_text(30 * kDayMs), "30 days");
    EXPECT_EQ(duration_text(kDayMs / 2), "12 hours");
    EXPECT_EQ(duration_text(600'000), "10 min");
    EXPECT_EQ(duration_text(90'000), "90 s");
    EXPECT_EQ(duration_text(12'500), "12.5 s");
}

TEST(Clock, ReadsDurations) {
    EXPECT_EQ(parse_duration("90s"), 90'000);
    EXPECT_EQ(parse_duration("10m"), 600'000);
    EXPECT_EQ(parse_duration("2h"), 7'200'000);
    EXPECT_EQ(parse_duration("1d"), 86'400'000);
    for (auto text : {"", "s", "10", "0s", "-1s", "1.5h", "10 m", "10min", "5w", "99999999999999999999s"})
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

}  // namespace
}  // namespace gb
