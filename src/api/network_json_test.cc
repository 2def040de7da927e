// SPDX-License-Identifier: Apache-2.0
#include "api/network_json.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::api {
namespace {

namespace json = boost::json;

TEST(NetworkJson, WhatIsInForce) {
    EffectiveNetwork network;
    network.closed = {"10.0.0.0/8"};
    network.allow_out = {"1.1.1.1"};
    network.header_rules = {{"a.com", {"A", "B"}}};
    network.max_connections = 2500;
    const json::object open = effective_network_json(network);
    EXPECT_EQ(open.at("inForce"), true);
    EXPECT_EQ(open.at("mode"), "open");
    EXPECT_FALSE(open.contains("open"));
    EXPECT_EQ(open.at("headers"), json::parse(R"({"a.com":["A","B"]})"));
    EXPECT_TRUE(open.at("egressProxy").is_null());
    network.only_listed = true;
    network.listed = {"pypi.org"};
    network.egress_proxy = "1.2.3.4:1080";
    const json::object closed = effective_network_json(network);
    EXPECT_EQ(closed.at("mode"), "closed");
    EXPECT_EQ(closed.at("open"), json::parse(R"(["pypi.org"])"));
    EXPECT_EQ(closed.at("egressProxy"), "1.2.3.4:1080");
}

TEST(NetworkJson, WhatIsRecordedHasNoValuesAndNoPassword) {
    SandboxRecord record;
    record.allow_internet_access = false;
    record.deny_out = {"8.8.8.8"};
    record.header_rules = {
        {"a.com", "A", "the-value"}, {"a.com", "B", "the-value"}, {"b.com", "A", "the-value"}};
    record.egress_proxy = {"1.2.3.4:1080", "the-user", "the-sealed"};
    const std::string text = json::serialize(recorded_network_json(record));
    EXPECT_EQ(text, R"({"inForce":false,"allowOut":[],"denyOut":["8.8.8.8","0.0.0.0/0"],)"
                    R"("headers":{"a.com":["A","B"],"b.com":["A"]},"egressProxy":"1.2.3.4:1080"})");
}

}  // namespace
}  // namespace gb::api
