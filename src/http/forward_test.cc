// SPDX-License-Identifier: Apache-2.0
#include "http/forward.h"

#include <gtest/gtest.h>

namespace gb::http {
namespace {

TEST(Forward, WhatSpeaksOfOneConnectionIsTakenOff) {
    Headers headers{{"Host", "a"},      {"Connection", "close, X-Mine, Host"},
                    {"X-Mine", "1"},    {"Keep-Alive", "5"},
                    {"TE", "trailers"}, {"Trailer", "X"},
                    {"Expect", "x"},    {"Transfer-Encoding", "chunked"},
                    {"Upgrade", "h2c"}, {"Proxy-Connection", ""},
                    {"Accept", "b"}};
    strip_hop_by_hop(headers, false);
    EXPECT_EQ(headers.items(), (Headers{{"Host", "a"}, {"Accept", "b"}}.items()));
}

TEST(Forward, AnUpgradeIsKeptWhereItIsAskedFor) {
    Headers headers{{"connection", "keep-alive, upgrade"}, {"upgrade", "websocket"}};
    EXPECT_TRUE(wants_upgrade(headers));
    strip_hop_by_hop(headers, true);
    EXPECT_EQ(headers.items(), (Headers{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}}.items()));
    EXPECT_FALSE(wants_upgrade({{"Upgrade", "websocket"}}));
    EXPECT_FALSE(wants_upgrade({{"Connection", "upgrade"}}));
}

TEST(Forward, LengthsOfBodies) {
    EXPECT_EQ(body_length({{"Content-Length", "12"}}), 12U);
    EXPECT_EQ(body_length({}), 0U);
    EXPECT_EQ(body_length({{"Transfer-Encoding", "chunked"}}), std::nullopt);
}

}  // namespace
}  // namespace gb::http
