// SPDX-License-Identifier: Apache-2.0
#include "egress/synthetic_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gb::egress {
namespace {

TEST(SyntheticNames, StandForNames) {
    SyntheticNames names;
    const net::Ipv4 a = names.address_of("a.com"), b = names.address_of("b.com");
    EXPECT_NE(a, b);
    EXPECT_EQ(names.address_of("a.com"), a);
    EXPECT_EQ(names.name_of(a), "a.com");
    EXPECT_EQ(names.name_of(b), "b.com");
    EXPECT_FALSE(names.name_of({b.value + 1}));
    EXPECT_FALSE(names.name_of({0}));
    for (const char* inside : {"198.18.0.0", "198.18.0.1", "198.19.255.255"})
        EXPECT_TRUE(SyntheticNames::is_synthetic(*net::parse_ipv4(inside))) << inside;
    for (const char* outside : {"198.17.255.255", "198.20.0.0", "8.8.8.8"})
        EXPECT_FALSE(SyntheticNames::is_synthetic(*net::parse_ipv4(outside))) << outside;
}

TEST(SyntheticNames, TheOldestAreForgotten) {
    SyntheticNames names;
    const net::Ipv4 first = names.address_of("first");
    for (std::uint32_t i = 1; i < SyntheticNames::kMost; ++i)
        ASSERT_TRUE(SyntheticNames::is_synthetic(names.address_of(fmt::format("n{}", i))));
    EXPECT_EQ(names.name_of(first), "first");
    EXPECT_EQ(names.address_of("one more"), first);
    EXPECT_EQ(names.name_of(first), "one more");
    EXPECT_NE(names.address_of("first"), first);
}

}  // namespace
}  // namespace gb::egress
