// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox_network.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace gb {
namespace {

net::NetworkRequest full() {
    return {.allow_internet_access = false,
            .allow_out = {"1.1.1.1", "*.example.com"},
            .deny_out = {"0.0.0.0/0"},
            .rules = {{"api.example.com", {{"Authorization", "Bearer ${e2b.secrets.key}"}, {"X-A", "1"}}},
                      {"*.example.org", {{"X-B", "2"}}}},
            .egress_proxy = net::ProxyRequest{"proxy.example.com:1080", "user", "the-password"}};
}

SandboxRecord record_of(std::string id) {
    SandboxRecord out;
    out.id = std::move(id);
    out.team_id = "t1";
    return out;
}

TEST(SandboxNetwork, ARowGivesBackWhatWasAsked) {
    const Sealer sealer(random_bytes(32));
    SandboxRecord record = record_of("i1");
    for (const net::NetworkRequest& network : {full(), net::NetworkRequest(), full()}) {
        ASSERT_TRUE(put_network(record, network, &sealer));
        EXPECT_EQ(network_of(record, &sealer), network);
    }
    EXPECT_EQ(record.egress_proxy.sealed_password.find("the-password"), std::string::npos);
    SandboxRecord again = record_of("i1");
    copy_network(record, again);
    EXPECT_EQ(network_of(again, &sealer), full());
}

TEST(SandboxNetwork, APasswordIsOneSandboxes) {
    const Sealer sealer(random_bytes(32)), other(random_bytes(32));
    SandboxRecord record = record_of("i1"), fork = record_of("i2");
    ASSERT_TRUE(put_network(record, full(), &sealer));
    copy_network(record, fork);
    EXPECT_EQ(network_of(fork, &sealer).error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(network_of(record, &other).error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(network_of(record, nullptr).error().code, ErrorCode::failed_precondition);
    const SandboxRecord before = fork;
    EXPECT_EQ(put_network(fork, full(), nullptr).error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(fork.egress_proxy, before.egress_proxy);
    net::NetworkRequest open = full();
    open.egress_proxy->password.clear();
    ASSERT_TRUE(put_network(fork, open, nullptr)) << "there is nothing to seal";
    EXPECT_EQ(network_of(fork, nullptr), open);
}

TEST(SandboxNetwork, OnlyTheWayOutIsReplaced) {
    const char* before =
        R"({"allowOut":["1.1.1.1"],"rules":{"a":[]},"allowPublicTraffic":false,"maskRequestHost":"x"})";
    EXPECT_EQ(with_egress(before, R"({"denyOut":["8.8.8.8"]})"),
              R"({"allowPublicTraffic":false,"maskRequestHost":"x","denyOut":["8.8.8.8"]})");
    EXPECT_EQ(with_egress(R"({"allowOut":["1.1.1.1"]})", "{}"), "");
    EXPECT_EQ(with_egress("", R"({"allowOut":[]})"), R"({"allowOut":[]})");
    EXPECT_EQ(with_egress("", ""), "");
    EXPECT_EQ(with_egress(R"({"allowPublicTraffic":false})", R"({"allowPublicTraffic":true})"),
              R"({"allowPublicTraffic":false})");
}

}  // namespace
}  // namespace gb
