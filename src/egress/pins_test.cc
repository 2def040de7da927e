// SPDX-License-Identifier: Apache-2.0
#include "egress/pins.h"

#include <string>

#include <gtest/gtest.h>

namespace gb::egress {
namespace {

std::vector<net::Ipv4> addresses(std::initializer_list<std::uint32_t> values) {
    std::vector<net::Ipv4> out;
    for (std::uint32_t value : values) out.push_back({value});
    return out;
}

TEST(Pins, WhatWasToldIsKnownForAnHourAfterTheLastTime) {
    Pins pins;
    pins.told("a", addresses({1, 2}), 60, 1000);
    EXPECT_TRUE(pins.was_told("a", {1}, 1000));
    EXPECT_TRUE(pins.was_told("a", {2}, 1000 + Pins::kKeepMs - 1));
    EXPECT_FALSE(pins.was_told("a", {2}, 1000 + Pins::kKeepMs));
    EXPECT_FALSE(pins.was_told("a", {3}, 1000));
    EXPECT_FALSE(pins.was_told("b", {1}, 1000));
    // A later answer keeps what it has, and leaves the others to their time.
    pins.told("a", addresses({2, 3}), 60, 500'000);
    EXPECT_TRUE(pins.was_told("a", {1}, Pins::kKeepMs));
    EXPECT_FALSE(pins.was_told("a", {1}, 1000 + Pins::kKeepMs));
    EXPECT_TRUE(pins.was_told("a", {2}, 1000 + Pins::kKeepMs));
    EXPECT_TRUE(pins.was_told("a", {3}, 1000 + Pins::kKeepMs));
    // A TTL that is longer counts.
    pins.told("long", addresses({9}), 7200, 0);
    EXPECT_TRUE(pins.was_told("long", {9}, 7'199'999));
    EXPECT_FALSE(pins.was_told("long", {9}, 7'200'000));
}

TEST(Pins, NothingToldIsNothingKept) {
    Pins pins;
    pins.told("a", {}, 60, 0);
    EXPECT_EQ(pins.names(), 0U);
}

TEST(Pins, BoundsPutOutTheOldest) {
    Pins pins;
    for (std::uint32_t i = 0; i < 100; ++i) pins.told("a", addresses({i}), 60, i);
    EXPECT_FALSE(pins.was_told("a", {35}, 100));
    EXPECT_TRUE(pins.was_told("a", {36}, 100));
    EXPECT_TRUE(pins.was_told("a", {99}, 100));

    for (std::size_t i = 0; i < Pins::kMaxNames - 1; ++i)
        pins.told("n" + std::to_string(i), addresses({1}), 60, 200);
    EXPECT_EQ(pins.names(), Pins::kMaxNames);
    pins.told("a", addresses({7}), 60, 300);  // the newest again
    pins.told("one more", addresses({1}), 60, 300);
    EXPECT_EQ(pins.names(), Pins::kMaxNames);
    EXPECT_TRUE(pins.was_told("a", {7}, 300));
    EXPECT_FALSE(pins.was_told("n0", {1}, 300));
    EXPECT_TRUE(pins.was_told("n1", {1}, 300));
}

}  // namespace
}  // namespace gb::egress
