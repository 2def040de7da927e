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

}  // namespace
}  // namespace gb
