// SPDX-License-Identifier: Apache-2.0
#include "api/network_request.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

// Contract 7.6: what E2B's own test of the route accepts and refuses.
TEST(NetworkUpdate, TheContractsMatrix) {
    struct Case {
        const char* body;
        bool good;
    };
    for (const Case& c : {
             Case{R"({"denyOut":["example.com"]})", false},
             Case{R"({"denyOut":["not-an-ip"]})", false},
             Case{R"({"denyOut":["300.0.0.1"]})", false},
             Case{R"({"denyOut":["10.0.0.0/33"]})", false},
             Case{R"({"denyOut":[""]})", false},
             Case{R"({"denyOut":["0.0.0.0/0","example.com"]})", false},
             Case{R"({"denyOut":["0.0.0.0/0","garbage/8"]})", false},
             Case{R"({"allowOut":["example.com"]})", false},
             Case{R"({"allowOut":["*.example.com"]})", false},
             Case{R"({"allowOut":["*"]})", false},
             Case{R"({"allowOut":["example.com"],"denyOut":["8.8.8.8"]})", false},
             Case{R"({"allowOut":["*.example.com"],"denyOut":["8.8.8.0/24"]})", false},
             Case{R"({"allowOut":["example.com","1.1.1.1"],"denyOut":["8.8.8.8"]})", false},
             Case{R"({"allowOut":["example.com"],"allow_internet_access":true})", false},
             Case{"", true},
             Case{"{}", true},
             Case{R"({"allowOut":["1.1.1.1"]})", true},
             Case{R"({"allowOut":["1.1.1.0/24"]})", true},
             Case{R"({"allowOut":["1.1.1.1"],"denyOut":["8.8.8.8"]})", true},
             Case{R"({"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["example.com"],"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["*.example.com"],"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["*"],"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["EXAMPLE.com","1.1.1.1","8.8.8.0/24"],"denyOut":["0.0.0.0/0"]})", true},
             Case{R"({"allowOut":["example.com"],"allow_internet_access":false})", true},
             Case{R"({"denyOut":["1.1.1.0/24","8.8.8.0/24","9.9.9.9"]})", true},
             Case{R"({"denyOut":["8.8.8.8"],"allow_internet_access":true})", true},
             Case{R"({"forceUpload":1})", true},
         }) {
        auto update = parse_network_update(c.body);
        EXPECT_EQ(update.has_value(), c.good) << c.body << (update ? "" : update.error().message);
        if (!update) EXPECT_EQ(update.error().code, ErrorCode::invalid_argument) << c.body;
    }
}

TEST(NetworkUpdate, EverythingArrives) {
    auto update = parse_network_update(
        R"({"denyOut":["0.0.0.0/0"],"allowOut":["a.com"],"allow_internet_access":false,"allowPublicTraffic":true,
            "rules":{"a.com":[{"transform":{"headers":{"A":"1","B":"2"}}},{},{"transform":{"headers":{"A":"3"}}}],
                     "b.com":[],"*.c.com":[{"transform":{}}]},
            "egressProxy":{"address":"1.2.3.4:1080","username":"u","password":"the-password"}})");
    ASSERT_TRUE(update) << update.error().message;
    EXPECT_EQ(update->network.allow_internet_access, false);
    EXPECT_EQ(update->network.rules, (std::map<std::string, std::vector<net::HeaderRule>>{
                                         {"a.com", {{"A", "1"}, {"B", "2"}, {"A", "3"}}}}));
    EXPECT_EQ(update->network.egress_proxy, (net::ProxyRequest{"1.2.3.4:1080", "u", "the-password"}));
    EXPECT_EQ(update->egress_json.find("the-password"), std::string::npos);
    EXPECT_EQ(update->egress_json.find("allowPublicTraffic"), std::string::npos)
        << "the way in is not its business";
    EXPECT_NE(update->egress_json.find(R"("username":"u")"), std::string::npos);
    EXPECT_FALSE(parse_network_update(R"({"egressProxy":null})")->network.egress_proxy);
}

TEST(NetworkUpdate, WhatIsMalformedOrNotSupportedNamesTheField) {
    for (auto [body, field] : std::initializer_list<std::pair<const char*, const char*>>{
             {"[]", "object"},
             {"{", "JSON"},
             {R"({"allowOut":"1.1.1.1"})", "allowOut"},
             {R"({"denyOut":[1]})", "denyOut"},
             {R"({"allow_internet_access":"no"})", "allow_internet_access"},
             {R"({"rules":[]})", "rules"},
             {R"({"rules":{"a.com":{}}})", "rules.a.com"},
             {R"({"rules":{"a.com":["x"]}})", "rules.a.com"},
             {R"({"rules":{"a.com":[{"action":"deny"}]}})", "rules.a.com.action"},
             {R"({"rules":{"a.com":[{"transform":[]}]}})", "rules.a.com.transform"},
             {R"({"rules":{"a.com":[{"transform":{"body":"x"}}]}})", "rules.a.com.transform.body"},
             {R"({"rules":{"a.com":[{"transform":{"headers":["x"]}}]}})", "transform.headers"},
             {R"({"rules":{"a.com":[{"transform":{"headers":{"A":1}}}]}})", "transform.headers.A"},
             {R"({"rules":{"a.com":[{"transform":{"headers":{"A":"${e2b.identity.tokens.x}"}}}]}})",
              "unknown placeholder"},
             {R"({"rules":{"a..com":[]}})", "a..com"},
             {R"({"rules":{"a.com":[],"A.COM":[]}})", "twice"},
             {R"({"egressProxy":"x:1"})", "egressProxy"},
             {R"({"egressProxy":{}})", "egressProxy.address"},
             {R"({"egressProxy":{"address":"proxy.example.com"}})", "host:port"},
             {R"({"egressProxy":{"address":"1.2.3.4:1080","password":"q9x"}})", "user name"},
             {R"({"egressProxy":{"address":"1.2.3.4:1080","username":5}})", "egressProxy.username"},
             {R"({"egressProxy":{"address":"1.2.3.4:1080","tls":{"enabled":true}}})", "egressProxy.tls"},
             {R"({"dnsServers":[]})", "dnsServers"}}) {
        auto update = parse_network_update(body);
        ASSERT_FALSE(update) << body;
        EXPECT_EQ(update.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(update.error().message.find(field), std::string::npos) << update.error().message;
        EXPECT_EQ(update.error().message.find("q9x"), std::string::npos);
    }
}

}  // namespace
}  // namespace gb::api
