// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_targets.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/network_json.h"
#include "node/effective_network.h"

namespace gb::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const net::Ipv4 kOk = *net::parse_ipv4("203.0.113.10"), kOne = *net::parse_ipv4("1.1.1.1");

PolicyInForce of(net::NetworkRequest request, net::Ceiling ceiling = {}) {
    auto policy = net::parse_policy(request);
    EXPECT_TRUE(policy);
    return {*policy, std::move(ceiling), {"203.0.113.53"}};
}

// "allow default: TCP 1.1.1.1 port 22", of each.
std::vector<std::string> said(const PolicyInForce& in_force) {
    Surroundings around;
    around.addresses = {kOne};
    around.names = {{"ok.example.com", kOk},
                    {"evil.example.net", net::parse_ipv4("203.0.113.12")},
                    {"inner.example.com", net::parse_ipv4("10.1.2.3")}};
    around.host = {*net::parse_ipv4("198.51.100.1")};
    around.slots = {*net::parse_ipv4("10.200.0.2")};
    around.server_port = 3000;
    std::vector<std::string> out;
    for (const Target& target : egress_targets(in_force, around))
        out.push_back(fmt::format("{} {}: {} {}", target.allowed ? "allow" : "deny", target.rule, target.what,
                                  target.destination));
    return out;
}

TEST(EgressTargets, AnOpenPolicyOpensWhatIsPublic) {
    const auto list = said(of({}));
    EXPECT_THAT(list, Contains("allow default: TCP 1.1.1.1 port 22"));
    EXPECT_THAT(list, Contains("allow default: QUIC 1.1.1.1 port 443"));
    EXPECT_THAT(list, Contains("allow default: DNS 1.1.1.1 for evil.example.net"));
    EXPECT_THAT(list, Contains("deny private: TLS inner.example.com port 443"));
    EXPECT_THAT(list, Not(Contains(HasSubstr("for inner.example.com"))));
    EXPECT_THAT(list, Contains("deny private: cloud metadata 169.254.169.254 port 80"));
    EXPECT_THAT(list, Contains("deny host: the host 198.51.100.1 port 3000"));
    EXPECT_THAT(list, Contains("deny host: another sandbox 10.200.0.2 port 49983"));
    EXPECT_THAT(list, Contains("deny host: the proxy itself 10.11.0.1 port 3128"));
    EXPECT_THAT(list, Contains("deny ipv6: IPv6 2606:4700:4700::1111 port 443"));
    EXPECT_THAT(list, Contains("deny spoofed-source: UDP with another's source 1.1.1.1 port 9"));
}

TEST(EgressTargets, AClosedPolicyOpensNothing) {
    for (const std::string& line : said(of({.allow_internet_access = false})))
        EXPECT_TRUE(line.starts_with("deny ")) << line;
    net::Ceiling closed;
    closed.only_listed = true;
    for (const std::string& line : said(of({}, closed))) EXPECT_TRUE(line.starts_with("deny ")) << line;
}

TEST(EgressTargets, NamesOpenTheWebAndNothingElse) {
    const auto list = said(of({.allow_out = {"ok.example.com"}, .deny_out = {"0.0.0.0/0"}}));
    EXPECT_THAT(list, Contains("allow allow ok.example.com: DNS 1.1.1.1 for ok.example.com"));
    EXPECT_THAT(list, Contains("allow allow ok.example.com: TLS ok.example.com port 443"));
    EXPECT_THAT(list, Contains("allow allow ok.example.com: HTTP ok.example.com port 80"));
    EXPECT_THAT(list, Contains("deny deny 0.0.0.0/0: TLS evil.example.net port 443"));
    EXPECT_THAT(list, Contains("deny deny 0.0.0.0/0: TLS, name of another 1.1.1.1 as ok.example.com"))
        << "a name is believed only with its own address";
    EXPECT_THAT(list, Contains("deny deny 0.0.0.0/0: UDP, time 1.1.1.1 port 123"));
    const auto address = said(of({.allow_out = {"1.1.1.1", "ok.example.com"}, .deny_out = {"0.0.0.0/0"}}));
    EXPECT_THAT(address, Contains("allow allow 1.1.1.1: TCP 1.1.1.1 port 22"));
    EXPECT_THAT(address, Contains("deny udp-closed: QUIC 1.1.1.1 port 443"));
    EXPECT_THAT(address, Contains("deny udp-closed: UDP, time 1.1.1.1 port 123"));
    EXPECT_THAT(address, Contains("allow allow 1.1.1.1: ICMP echo 1.1.1.1"));
}

TEST(EgressTargets, TheCeilingIsAbove) {
    net::Ceiling ceiling;
    ceiling.closed_names.push_back(*net::parse_pattern("evil.example.net"));
    ceiling.closed.push_back({*net::parse_ipv4("1.1.1.1"), 32});
    const auto list = said(of({}, ceiling));
    EXPECT_THAT(list, Contains("deny closed evil.example.net: DNS 1.1.1.1 for evil.example.net"));
    EXPECT_THAT(list, Contains("deny closed evil.example.net: TLS evil.example.net port 443"));
    EXPECT_THAT(list, Contains("deny closed 1.1.1.1: TCP 1.1.1.1 port 22"));
    EXPECT_THAT(list, Contains("allow default: HTTP ok.example.com port 80"));
}

TEST(EgressTargets, AProxyOfTheClientCarriesTcpAlone) {
    const auto list = said(of({.egress_proxy = net::ProxyRequest{"203.0.113.20:1080", "", ""}}));
    EXPECT_THAT(list, Contains("allow default: TCP 1.1.1.1 port 22"));
    EXPECT_THAT(list, Contains("deny proxy-only: UDP, time 1.1.1.1 port 123"));
    EXPECT_THAT(list, Contains("deny proxy-only: ICMP echo 1.1.1.1"));
}

TEST(EgressTargets, WhatTheServerSaysComesBackAsThePolicy) {
    net::Ceiling ceiling;
    ceiling.only_listed = true;
    ceiling.closed_names.push_back(*net::parse_pattern("*.closed.example.com"));
    ceiling.open.push_back({*net::parse_ipv4("1.1.1.0"), 24});
    ceiling.open_names.push_back(*net::parse_pattern("ok.example.com"));
    auto policy = net::parse_policy(
        {.allow_out = {"8.8.8.8", "ok.example.com", "*.sub.example.com"}, .deny_out = {"0.0.0.0/0"}});
    ASSERT_TRUE(policy);
    NetworkOptions options;
    options.resolvers = {"203.0.113.53:53"};
    auto read = read_policy_in_force(
        boost::json::value(api::effective_network_json(effective_network(*policy, ceiling, options))));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->policy, *policy);
    EXPECT_EQ(read->ceiling.open, ceiling.open);
    EXPECT_EQ(read->ceiling.open_names, ceiling.open_names);
    EXPECT_EQ(read->ceiling.closed_names, ceiling.closed_names);
    EXPECT_TRUE(read->ceiling.only_listed);
    EXPECT_EQ(read->resolvers, std::vector<std::string>{"203.0.113.53"});
    const auto names = names_to_try(*read);
    EXPECT_THAT(names, testing::IsSupersetOf(
                           {"ok.example.com", "proof.sub.example.com", "proof.closed.example.com"}));

    EXPECT_EQ(read_policy_in_force(boost::json::object{{"inForce", false}}).error().code,
              ErrorCode::failed_precondition);
    EXPECT_EQ(read_policy_in_force(boost::json::value("x")).error().code, ErrorCode::internal);
    EXPECT_FALSE(read_policy_in_force(boost::json::object{{"inForce", true}, {"closed", {"?"}}}));
}

}  // namespace
}  // namespace gb::cli
