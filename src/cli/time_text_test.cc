// SPDX-License-Identifier: Apache-2.0
#include "cli/time_text.h"

#include <gtest/gtest.h>

namespace gb::cli {
namespace {

TEST(TimeText, IsReadInThreeForms) {
    EXPECT_EQ(parse_time_text("0"), 0);
    EXPECT_EQ(parse_time_text("1767225600"), 1'767'225'600);
    EXPECT_EQ(parse_time_text("2026-01-01"), 1'767'225'600);
    EXPECT_EQ(parse_time_text("2026-01-01T00:00:01.9Z"), 1'767'225'601);
    EXPECT_EQ(parse_time_text("2026-01-01T01:00:00+01:00"), 1'767'225'600);
    for (const char* text :
         {"", "-1", "yesterday", "2026-13-01", "2026-01-01 ", "12s", "99999999999999999999"})
        EXPECT_FALSE(parse_time_text(text)) << text;
}

}  // namespace
}  // namespace gb::cli
