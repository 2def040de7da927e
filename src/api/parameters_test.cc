// SPDX-License-Identifier: Apache-2.0
#include "api/parameters.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

http::Target target(const char* text) { return *http::parse_target(text); }

TEST(Parameters, NumbersAreWholeAndInRange) {
    EXPECT_EQ(*number_parameter(target("/x"), "n", 1, 5), std::nullopt);
    EXPECT_EQ(**number_parameter(target("/x?n=5"), "n", 1, 5), 5);
    for (const char* bad : {"/x?n=", "/x?n=6", "/x?n=0", "/x?n=1.0", "/x?n=1x", "/x?n=%201", "/x?n=99999999999999999999"}) {
        auto value = number_parameter(target(bad), "n", 1, 5);
        ASSERT_FALSE(value) << bad;
        EXPECT_NE(value.error().message.find("'n'"), std::string::npos);
    }
    EXPECT_EQ(*page_limit(target("/x")), 100U);
    EXPECT_FALSE(page_limit(target("/x?limit=101")));
}

TEST(Parameters, ListsAreRepeatedOrJoined) {
    EXPECT_EQ(list_parameter(target("/x?a=1,2&b=9&a=3,,&a="), "a"),
              (std::vector<std::string>{"1", "2", "3"}));
    EXPECT_EQ(list_parameter(target("/x?a=1%2C2"), "a"), (std::vector<std::string>{"1", "2"}));
    EXPECT_TRUE(list_parameter(target("/x"), "a").empty());
}

TEST(Parameters, WindowsEndNowUnlessTheySayOtherwise) {
    auto window = time_window(target("/x"), 1'000'000, 60'000);
    EXPECT_EQ(window->from_ms, 940'000);
    EXPECT_EQ(window->to_ms, 1'000'000);
    window = time_window(target("/x?start=5&end=7"), 1'000'000, 60'000);
    EXPECT_EQ(window->from_ms, 5000);
    EXPECT_EQ(window->to_ms, 7000);
    EXPECT_FALSE(time_window(target("/x?start=8&end=7"), 0, 0));
    EXPECT_FALSE(time_window(target("/x?start=-1"), 0, 0));
    EXPECT_FALSE(time_window(target("/x?end=notadate"), 0, 0));
}

}  // namespace
}  // namespace gb::api
