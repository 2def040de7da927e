// SPDX-License-Identifier: Apache-2.0
#include "ingress/route.h"

#include <gtest/gtest.h>

namespace gb::ingress {
namespace {

Result<std::optional<Route>> route(std::string host, std::string id = "", std::string port = "") {
    http::RequestHead head;
    head.headers.add("Host", std::move(host));
    if (!id.empty()) head.headers.add("E2b-Sandbox-Id", std::move(id));
    if (!port.empty()) head.headers.add("E2b-Sandbox-Port", std::move(port));
    return find_route(head);
}

TEST(Route, HeadersDecideOnLocalHosts) {
    for (auto host : {"127.0.0.1:3000", "localhost:3000", "LOCALHOST", "[::1]:3000", "sandbox.example.com"}) {
        auto found = route(host, "iabc", "49983");
        ASSERT_TRUE(found) << host;
        ASSERT_TRUE(*found) << host;
        EXPECT_EQ((*found)->sandbox_id, "iabc");
        EXPECT_EQ((*found)->port, 49983);
    }
    EXPECT_EQ((*route("localhost", "iabc-6532622b", "80"))->sandbox_id, "iabc");
}

TEST(Route, NoHeaderIsTheControlPlane) {
    EXPECT_FALSE(*route("127.0.0.1:3000"));
    EXPECT_FALSE(*route("api.example.com"));
}

TEST(Route, HostNamesDecideElsewhereAndHeadersCannotOverride) {
    auto found = route("8080-iabc.example.com", "iother", "1");
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->sandbox_id, "iabc");
    EXPECT_EQ((*found)->port, 8080);
    EXPECT_FALSE(*route("api.example.com", "iabc", "80"));
    EXPECT_EQ((*route("49999-iabc-6532622b.example.com"))->sandbox_id, "iabc");
}

TEST(Route, MalformedIsRefused) {
    for (auto [id, port] : std::initializer_list<std::pair<const char*, const char*>>{
             {"iabc", ""}, {"iabc", "0"}, {"iabc", "65536"}, {"iabc", "80x"}, {"iabc", "-1"}, {"../x", "80"}, {"I", "80"},
             {"-x", "80"}})
        EXPECT_FALSE(route("localhost", id, port)) << id << " " << port;
    EXPECT_FALSE(route("99999-iabc.example.com"));
    EXPECT_FALSE(route("80-.example.com"));
}

TEST(Route, OnlyTheAgentsPublicPathsAreReachable) {
    for (auto path : {"/health", "/files", "/files/compose", "/process.Process/Start", "/filesystem.Filesystem/Stat"})
        EXPECT_TRUE(agent_path_is_public(path)) << path;
    for (auto path : {"/init", "//init", "/files/../init", "/process.Process/../../init", "/freeze", "/", "", "/INIT",
                      "/process.Process/Start/x", "/telemetry", "/trust", "//trust", "/files/../trust", "//telemetry", "/metrics/../telemetry"})
        EXPECT_FALSE(agent_path_is_public(path)) << path;
}

}  // namespace
}  // namespace gb::ingress
