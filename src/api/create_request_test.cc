// SPDX-License-Identifier: Apache-2.0
#include "api/create_request.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

TEST(CreateRequest, DefaultsDifferByGeneration) {
    auto v1 = parse_create(R"({"templateID":"base"})", Generation::v1);
    auto v2 = parse_create(R"({"templateID":"base"})", Generation::v2);
    ASSERT_TRUE(v1 && v2);
    EXPECT_EQ(v1->timeout_s, 15);
    EXPECT_FALSE(v1->secure);
    EXPECT_EQ(v2->timeout_s, 300);
    EXPECT_TRUE(v2->secure);
}

TEST(CreateRequest, WhatThePythonClientSends) {
    auto request = parse_create(
        R"({"templateID":"base","allow_internet_access":false,"autoPause":false,"autoResume":{"enabled":false},
            "envVars":{"A":"b\nc"},"metadata":{"k":"v"},"secure":true,"timeout":300,"forceUpload":1})",
        Generation::v1);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->network.allow_internet_access, false);
    EXPECT_EQ(request->env_vars.at("A"), "b\nc");
    EXPECT_TRUE(request->secure);
}

TEST(CreateRequest, NetworkListsArriveWhole) {
    auto request = parse_create(
        R"({"templateID":"base","network":{"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":true}})",
        Generation::v2);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->network.allow_out, std::vector<std::string>{"1.1.1.1"});
    EXPECT_EQ(request->network.deny_out, std::vector<std::string>{"0.0.0.0/0"});
    EXPECT_NE(request->network_json.find("denyOut"), std::string::npos);
}

TEST(CreateRequest, RulesAndProxyArriveAndThePasswordIsNotGivenBack) {
    auto request = parse_create(
        R"({"templateID":"b","network":{"rules":{"a.com":[{"transform":{"headers":{"A":"b"}}}]},"maskRequestHost":"x",
            "egressProxy":{"address":"p.example.com:1080","username":"u","password":"the-password"}}})",
        Generation::v2);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->network.rules.at("a.com"), (std::vector<net::HeaderRule>{{"A", "b"}}));
    EXPECT_EQ(request->network.egress_proxy, (net::ProxyRequest{"p.example.com:1080", "u", "the-password"}));
    EXPECT_EQ(request->network_json.find("password"), std::string::npos);
    EXPECT_NE(request->network_json.find("p.example.com:1080"), std::string::npos);
    EXPECT_NE(request->network_json.find("maskRequestHost"), std::string::npos);
}

TEST(CreateRequest, WhatNoPolicyCanBeMadeOfIsRefused) {
    for (auto [body, says] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"({"templateID":"b","network":{"denyOut":["example.com"]}})", "example.com"},
             {R"({"templateID":"b","network":{"allowOut":["example.com"]}})", "ALL_TRAFFIC"},
             {R"({"templateID":"b","network":{"rules":{"*":[]}}})", "'*'"}}) {
        auto request = parse_create(body, Generation::v2);
        ASSERT_FALSE(request) << body;
        EXPECT_EQ(request.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(request.error().message.find(says), std::string::npos) << request.error().message;
    }
    EXPECT_TRUE(parse_create(
        R"({"templateID":"b","allow_internet_access":false,"network":{"allowOut":["example.com"]}})",
        Generation::v2));
}

TEST(CreateRequest, WrongTypesNameTheField) {
    for (auto [body, field] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"({})", "templateID"},
             {R"({"templateID":5})", "templateID"},
             {R"({"templateID":"b","timeout":"x"})", "timeout"},
             {R"({"templateID":"b","timeout":1.5})", "timeout"},
             {R"({"templateID":"b","timeout":99999999999})", "timeout"},
             {R"({"templateID":"b","metadata":{"a":1}})", "metadata.a"},
             {R"({"templateID":"b","metadata":[]})", "metadata"},
             {R"({"templateID":"b","envVars":{"A=B":"c"}})", "envVars"},
             {R"({"templateID":"b","network":{"denyOut":"all"}})", "network.denyOut"},
             {R"({"templateID":"b","allow_internet_access":"no"})", "allow_internet_access"}}) {
        auto request = parse_create(body, Generation::v2);
        ASSERT_FALSE(request) << body;
        EXPECT_EQ(request.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(request.error().message.find(field), std::string::npos) << request.error().message;
    }
}

TEST(CreateRequest, WhatCannotBeKeptIsRefusedNotIgnored) {
    for (auto body :
         {R"({"templateID":"b","network":{"rules":{"a.com":[{"transform":{"body":"x"}}]}}})",
          R"({"templateID":"b","network":{"egressProxy":{"address":"x"}}})",
          R"({"templateID":"b","network":{"dnsServers":["8.8.8.8"]}})",
          R"({"templateID":"b","volumeMounts":{}})", R"({"templateID":"b","network":{"httpsPorts":[443]}})",
          R"({"templateID":"b","volumeMounts":[{"name":"v","path":"/m"}]})"})
        EXPECT_FALSE(parse_create(body, Generation::v2)) << body;
}

TEST(CreateRequest, WhatHappensAtTheEndOfALifetime) {
    auto request = parse_create(R"({"templateID":"b","autoPause":true,"autoResume":{"enabled":true}})", Generation::v2);
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->auto_pause && request->auto_resume && request->auto_pause_memory);
    request = parse_create(R"({"templateID":"b","autoPause":true,"autoPauseMemory":false})", Generation::v2);
    ASSERT_TRUE(request);
    EXPECT_FALSE(request->auto_pause_memory);
    for (auto body : {R"({"templateID":"b","autoPauseMemory":false})",
                      R"({"templateID":"b","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}})"})
        EXPECT_EQ(parse_create(body, Generation::v2).error().code, ErrorCode::invalid_argument) << body;
}

TEST(CreateRequest, PrivatePortsNeedASecuredSandbox) {
    const char* body = R"({"templateID":"b","network":{"allowPublicTraffic":false}})";
    EXPECT_FALSE(parse_create(body, Generation::v2)->public_traffic);
    EXPECT_EQ(parse_create(body, Generation::v1).error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(parse_create(R"({"templateID":"b","secure":true,"network":{"allowPublicTraffic":false}})", Generation::v1));
}

TEST(CreateRequest, MasksAreHosts) {
    auto body = [](const char* mask) {
        return std::string(R"({"templateID":"b","network":{"maskRequestHost":")") + mask + "\"}}";
    };
    for (auto good : {"localhost", "localhost:${PORT}", "a.b-c.example:8080", "127.0.0.1:${PORT}", "[::1]:${PORT}", "[::1]",
                      "${PORT}-x.test", ""})
        EXPECT_TRUE(parse_create(body(good), Generation::v2)) << good;
    for (auto bad : {"http://a", "a b", "a/b", "a:", "a:b", "a:123456", "${PORT", "a\\r\\nX: y", ":80", "[::1", "[zz]", "a_b"})
        EXPECT_EQ(parse_create(body(bad), Generation::v2).error().code, ErrorCode::invalid_argument) << bad;
    EXPECT_FALSE(parse_create(body(std::string(256, 'a').c_str()), Generation::v2));
}

TEST(CreateRequest, NullCountsAsAbsent) {
    EXPECT_TRUE(parse_create(R"({"templateID":"b","metadata":null,"network":null,"mcp":null})", Generation::v2));
}

TEST(CreateRequest, GarbageIsOneClearError) {
    for (auto body : {"", "   ", "[]", "nonsense", "{\"a\":", "\"x\"", "{\"templateID\":\"b\"} x"})
        EXPECT_EQ(parse_create(body, Generation::v2).error().code, ErrorCode::invalid_argument) << body;
    EXPECT_FALSE(parse_create(std::string(100'000, '['), Generation::v2));
    // It would be given back as something that is no JSON number.
    EXPECT_FALSE(parse_create(R"({"templateID":"b","network":{"x":[2e722]}})", Generation::v2));
    EXPECT_TRUE(parse_create(R"({"templateID":"b","network":{"x":[2e72]}})", Generation::v2));
}

}  // namespace
}  // namespace gb::api
