// SPDX-License-Identifier: Apache-2.0
// Contract 7.6: what is accepted, what is refused and in which words, what it means.
#include "net/policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/flow_cut.h"

namespace gb::net {
namespace {

using namespace std::string_literals;

constexpr std::string_view kNeedsDenyAll =
    "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all "
    "other "
    "traffic.";

Cidr block(std::string_view text) {
    return std::get<Cidr>(*parse_cidr(text));
}

NamePattern pattern(std::string_view text) {
    return *parse_pattern(text);
}

struct Refusal {
    const char* name;
    NetworkRequest request;
    ErrorCode code;
    std::string_view message;
};

TEST(Policy, Refusals) {
    const Refusal kCases[] = {
        {"domain in deny",
         {.deny_out = {"example.com"}},
         ErrorCode::invalid_argument,
         "invalid denied CIDR example.com"},
        {"garbage in deny",
         {.deny_out = {"not-a-cidr"}},
         ErrorCode::invalid_argument,
         "invalid denied CIDR not-a-cidr"},
        {"garbage beside deny-all",
         {.deny_out = {"0.0.0.0/0", "x"}},
         ErrorCode::invalid_argument,
         "invalid denied CIDR x"},
        {"blank in deny", {.deny_out = {""}}, ErrorCode::invalid_argument, "invalid denied CIDR "},
        {"domain without deny", {.allow_out = {"example.com"}}, ErrorCode::invalid_argument, kNeedsDenyAll},
        {"wildcard without deny",
         {.allow_out = {"*.example.com"}},
         ErrorCode::invalid_argument,
         kNeedsDenyAll},
        {"star without deny", {.allow_out = {"*"}}, ErrorCode::invalid_argument, kNeedsDenyAll},
        {"domain with partial deny",
         {.allow_out = {"example.com"}, .deny_out = {"8.0.0.0/8"}},
         ErrorCode::invalid_argument,
         kNeedsDenyAll},
        {"domain and address with partial deny",
         {.allow_out = {"8.8.8.8", "example.com"}, .deny_out = {"8.0.0.0/8"}},
         ErrorCode::invalid_argument,
         kNeedsDenyAll},
        {"two halves are not deny-all",
         {.allow_out = {"example.com"}, .deny_out = {"0.0.0.0/1", "128.0.0.0/1"}},
         ErrorCode::invalid_argument,
         kNeedsDenyAll},
        {"IPv6 all is not deny-all",
         {.allow_out = {"example.com"}, .deny_out = {"::/0"}},
         ErrorCode::invalid_argument,
         kNeedsDenyAll},
        {"N16 NUL in a name",
         {.allow_out = {"evil\0.ok.com"s}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::invalid_argument,
         ""},
        {"N16 trailing dot",
         {.allow_out = {"example.com."}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::invalid_argument,
         ""},
        {"N16 inner star",
         {.allow_out = {"a.*.com"}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::invalid_argument,
         ""},
        {"mistyped address",
         {.allow_out = {"8.8.8.256"}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::invalid_argument,
         ""},
        {"URL",
         {.allow_out = {"https://example.com"}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::invalid_argument,
         ""},
        {"rules for every host", {.rules = {{"*", {}}}}, ErrorCode::invalid_argument, ""},
        {"rules for an address", {.rules = {{"1.2.3.4", {}}}}, ErrorCode::invalid_argument, ""},
        {"rules for one host twice",
         {.rules = {{"a.com", {}}, {"A.com", {}}}},
         ErrorCode::invalid_argument,
         ""},
        {"proxy without a port",
         {.egress_proxy = ProxyRequest{"proxy.example", "", ""}},
         ErrorCode::invalid_argument,
         "invalid egress proxy: its address is host:port"},
        {"proxy that is no host",
         {.egress_proxy = ProxyRequest{"socks5://proxy:1080", "", ""}},
         ErrorCode::invalid_argument,
         ""},
        {"proxy by IPv6",
         {.egress_proxy = ProxyRequest{"[::1]:1080", "", ""}},
         ErrorCode::invalid_argument,
         ""},
        {"proxy with a password alone",
         {.egress_proxy = ProxyRequest{"proxy.example:1080", "", "x"}},
         ErrorCode::invalid_argument,
         ""},
        {"too many",
         {.deny_out = std::vector<std::string>(1001, "8.8.8.8")},
         ErrorCode::invalid_argument,
         ""},
    };
    for (const Refusal& c : kCases) {
        auto policy = parse_policy(c.request);
        ASSERT_FALSE(policy) << c.name;
        EXPECT_EQ(policy.error().code, c.code) << c.name << ": " << policy.error().message;
        if (!c.message.empty()) EXPECT_EQ(policy.error().message, c.message) << c.name;
    }
}

struct Meaning {
    const char* name;
    NetworkRequest request;
    std::vector<std::string> expected;  // "<address> <rule>"
};

TEST(Policy, Meanings) {
    const Meaning kCases[] = {
        {"nothing said", {}, {"8.8.8.8 default", "10.0.0.1 private", "169.254.169.254 private"}},
        {"true changes nothing",
         {.allow_internet_access = true, .deny_out = {"8.8.8.8"}},
         {"8.8.8.8 deny 8.8.8.8", "8.8.8.9 default"}},
        {"false denies all",
         {.allow_internet_access = false},
         {"8.8.8.8 deny 0.0.0.0/0", "255.255.255.255 private"}},
        {"allow applies to false",
         {.allow_internet_access = false, .allow_out = {"8.8.8.0/24"}},
         {"8.8.8.8 allow 8.8.8.0/24", "8.8.9.1 deny 0.0.0.0/0"}},
        {"allow beats deny", {.allow_out = {"8.8.8.8"}, .deny_out = {"8.8.8.8"}}, {"8.8.8.8 allow 8.8.8.8"}},
        {"allow alone changes nothing",
         {.allow_out = {"8.8.8.8"}},
         {"8.8.8.8 allow 8.8.8.8", "1.1.1.1 default"}},
        {"an empty allow list allows nothing",
         {.allow_out = {}, .deny_out = {"0.0.0.0/0"}},
         {"8.8.8.8 deny 0.0.0.0/0"}},
        {"allow never opens closed ranges",
         {.allow_out = {"0.0.0.0/0", "10.0.0.1", "169.254.169.254", "192.0.2.9"}},
         {"10.0.0.1 private", "169.254.169.254 private", "192.0.2.9 closed 192.0.2.0/24"}},
        {"narrowest block names the rule",
         {.deny_out = {"8.0.0.0/8", "8.8.8.0/24"}},
         {"8.8.8.8 deny 8.8.8.0/24", "8.9.9.9 deny 8.0.0.0/8"}},
        {"host bits are cleared", {.deny_out = {"8.8.8.8/8"}}, {"8.1.1.1 deny 8.0.0.0/8"}},
        {"IPv6 has no effect",
         {.allow_out = {"2001:db8::/32"}, .deny_out = {"::/0", "::1"}},
         {"8.8.8.8 default"}},
        {"N10 mapped is IPv4",
         {.allow_out = {"::ffff:8.8.8.8"}, .deny_out = {"::ffff:0:0/96"}},
         {"8.8.8.8 allow 8.8.8.8", "8.8.8.9 deny 0.0.0.0/0"}},
    };
    const Ceiling ceiling{.closed = {block("192.0.2.0/24")}};
    for (const Meaning& c : kCases) {
        auto policy = parse_policy(c.request);
        ASSERT_TRUE(policy) << c.name << ": " << policy.error().message;
        for (const std::string& line : c.expected) {
            std::string address = line.substr(0, line.find(' '));
            Ruling ruling = judge(*policy, ceiling, *parse_ipv4(address));
            EXPECT_EQ(address + " " + ruling.rule, line) << c.name;
            EXPECT_EQ(ruling.verdict == Verdict::allow,
                      ruling.rule == "default" || ruling.rule.starts_with("allow "));
        }
    }
}

TEST(Policy, ClosedRangesOfTheContract) {
    for (const char* address : {"0.1.2.3", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
                                "169.254.0.1", "172.16.0.0", "172.31.255.255", "192.168.0.0", "224.0.0.1",
                                "239.255.255.255", "240.0.0.1", "255.255.255.255"})
        EXPECT_EQ(judge(open_policy(), {}, *parse_ipv4(address)).rule, "private") << address;
    for (const char* address :
         {"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
          "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
          "192.169.0.0", "223.255.255.255"})
        EXPECT_EQ(judge(open_policy(), {}, *parse_ipv4(address)).rule, "default") << address;
}

TEST(Policy, ClosedDeniesEverything) {
    EXPECT_EQ(judge(closed_policy(), {}, *parse_ipv4("8.8.8.8")).verdict, Verdict::deny);
    EXPECT_EQ(judge(closed_policy(), {}, *parse_ipv4("0.0.0.0")).verdict, Verdict::deny);
}

// What names say, under the operator's ceiling: the verdict of an address alone, of the address as the
// name's, and of the name for the resolver.
struct NameCase {
    const char* what;
    NetworkRequest request;
    Ceiling ceiling;
    const char *address, *name;
    const char *alone, *named, *asked;
};

TEST(Policy, NamesAndTheCeiling) {
    const NetworkRequest names{.allow_out = {"ok.com", "*.sub.com", "9.9.9.9"}, .deny_out = {"0.0.0.0/0"}};
    const NetworkRequest every{.allow_out = {"*"}, .deny_out = {"0.0.0.0/0"}};
    const NetworkRequest closed{.allow_internet_access = false};
    const Ceiling none{};
    const Ceiling shut{.closed = {block("8.8.0.0/16")}, .closed_names = {pattern("*.evil.com")}};
    const Ceiling listed{
        .only_listed = true, .open = {block("1.1.1.0/24")}, .open_names = {pattern("ok.com")}};
    const Ceiling nothing{.only_listed = true};
    const char* const all = "deny deny 0.0.0.0/0";
    const NameCase kCases[] = {
        {"a listed name", names, none, "5.5.5.5", "ok.com", all, "allow allow ok.com", "allow allow ok.com"},
        {"below it", names, none, "5.5.5.5", "a.ok.com", all, all, all},
        {"below a wildcard", names, none, "5.5.5.5", "a.sub.com", all, "allow allow *.sub.com",
         "allow allow *.sub.com"},
        {"N8 the wildcard's own name", names, none, "5.5.5.5", "sub.com", all, all, all},
        {"a listed address", names, none, "9.9.9.9", "x.com", "allow allow 9.9.9.9", "allow allow 9.9.9.9",
         all},
        {"a private answer", names, none, "10.0.0.1", "ok.com", "deny private", "deny private",
         "allow allow ok.com"},
        {"metadata", names, none, "169.254.169.254", "ok.com", "deny private", "deny private",
         "allow allow ok.com"},
        {"every name", every, none, "5.5.5.5", "x.com", all, "allow allow *", "allow allow *"},
        {"open", {}, none, "5.5.5.5", "x.com", "allow default", "allow default", "allow default"},
        {"closed by the client", closed, none, "5.5.5.5", "x.com", all, all, all},
        {"the operator's block", names, shut, "8.8.8.8", "ok.com", "deny closed 8.8.0.0/16",
         "deny closed 8.8.0.0/16", "allow allow ok.com"},
        {"the operator's name", every, shut, "5.5.5.5", "a.evil.com", all, "deny closed *.evil.com",
         "deny closed *.evil.com"},
        {"the operator's name, open client",
         {},
         shut,
         "5.5.5.5",
         "a.evil.com",
         "allow default",
         "deny closed *.evil.com",
         "deny closed *.evil.com"},
        {"only listed: a name",
         {},
         listed,
         "5.5.5.5",
         "ok.com",
         "deny closed",
         "allow default",
         "allow default"},
        {"only listed: an address",
         {},
         listed,
         "1.1.1.1",
         "x.com",
         "allow default",
         "allow default",
         "deny closed"},
        {"only listed: another", {}, listed, "5.5.5.5", "x.com", "deny closed", "deny closed", "deny closed"},
        {"only listed, client closed", closed, listed, "1.1.1.1", "ok.com", all, all, all},
        {"nothing is listed", names, nothing, "9.9.9.9", "ok.com", "deny closed", "deny closed",
         "deny closed"},
        {"nothing is listed, open client",
         {},
         nothing,
         "9.9.9.9",
         "ok.com",
         "deny closed",
         "deny closed",
         "deny closed"},
    };
    auto shown = [](const Ruling& ruling) {
        return fmt::format("{} {}", to_string(ruling.verdict), ruling.rule);
    };
    for (const NameCase& c : kCases) {
        auto policy = parse_policy(c.request);
        ASSERT_TRUE(policy) << c.what << ": " << policy.error().message;
        const Ipv4 address = *parse_ipv4(c.address);
        EXPECT_EQ(shown(judge(*policy, c.ceiling, address)), c.alone) << c.what;
        EXPECT_EQ(shown(judge(*policy, c.ceiling, address, c.name)), c.named) << c.what;
        EXPECT_EQ(shown(judge_name(*policy, c.ceiling, c.name)), c.asked) << c.what;
    }
}

TEST(Policy, HeaderRulesOfAHost) {
    auto policy = parse_policy({.rules = {{"api.Example.com", {{"A", "exact"}}},
                                          {"*.example.com", {{"A", "wide"}, {"B", "wide"}}},
                                          {"other.com", {{"C", "other"}}}}});
    ASSERT_TRUE(policy);
    using testing::ElementsAre;
    EXPECT_THAT(header_rules(*policy, "api.example.com"),
                ElementsAre(HeaderRule{"A", "wide"}, HeaderRule{"B", "wide"}, HeaderRule{"A", "exact"}));
    EXPECT_THAT(header_rules(*policy, "x.example.com"),
                ElementsAre(HeaderRule{"A", "wide"}, HeaderRule{"B", "wide"}));
    EXPECT_THAT(header_rules(*policy, "example.com"), testing::IsEmpty()) << "N8";
}

TEST(Policy, PacketSetsSendToTheProxyWhatOnlyANameDecides) {
    auto sets = [](const NetworkRequest& request, const Ceiling& ceiling = {}) {
        auto policy = parse_policy(request);
        EXPECT_TRUE(policy) << policy.error().message;
        return packet_sets(*policy, ceiling);
    };
    const std::vector<Cidr> all{block("0.0.0.0/0")};
    using testing::IsEmpty;

    const PacketSets open = sets({});
    EXPECT_THAT(open.named, IsEmpty()) << "an empty policy costs nothing";
    EXPECT_THAT(open.tunneled, IsEmpty());
    EXPECT_THAT(open.udp_closed, IsEmpty());
    EXPECT_THAT(sets({.allow_internet_access = false, .allow_out = {"1.1.1.1"}}).named, IsEmpty());

    const PacketSets named = sets({.allow_out = {"ok.com", "1.1.1.1"}, .deny_out = {"0.0.0.0/0"}});
    EXPECT_EQ(merge(named.named), merge(complement(named.allow))) << "what an address opens needs no name";
    EXPECT_EQ(named.udp_closed, all) << "N6";

    const PacketSets headers = sets({.rules = {{"a.com", {{"A", "b"}}}}});
    EXPECT_EQ(headers.named, all);
    EXPECT_EQ(headers.quic_closed, all);
    EXPECT_THAT(headers.udp_closed, IsEmpty());

    EXPECT_EQ(sets({}, {.closed_names = {pattern("a.com")}}).named, all);
    EXPECT_EQ(sets({}, {.only_listed = true, .open_names = {pattern("a.com")}}).named, all);
    EXPECT_THAT(sets({}, {.only_listed = true, .open = {block("1.1.1.1")}}).named, IsEmpty());
    EXPECT_EQ(sets({.egress_proxy = ProxyRequest{"proxy.example:1080", "", ""}}).tunneled, all);
}

TEST(Policy, WhatPacketRulesDeny) {
    const auto denied = [](const NetworkRequest& request, const char* address, std::uint16_t port) {
        const EgressPolicy policy = *parse_policy(request);
        const Ceiling ceiling;
        return denies_packets(policy, ceiling, packet_sets(policy, ceiling), *parse_ipv4(address), port);
    };
    EXPECT_FALSE(denied({}, "8.8.8.8", 443));
    EXPECT_TRUE(denied({}, "10.0.0.1", 443));
    EXPECT_TRUE(denied({.deny_out = {"8.8.8.8"}}, "8.8.8.8", 22));
    EXPECT_FALSE(denied({.deny_out = {"8.8.8.8"}}, "8.8.4.4", 22));
    const NetworkRequest names{.allow_out = {"ok.com", "1.1.1.1"}, .deny_out = {"0.0.0.0/0"}};
    EXPECT_TRUE(denied(names, "8.8.8.8", 443)) << "a name may open it, through the proxy";
    EXPECT_FALSE(denied(names, "1.1.1.1", 443));
    EXPECT_TRUE(denied({.rules = {{"a.com", {{"A", "b"}}}}}, "1.1.1.1", 443)) << "it must be seen";
    EXPECT_FALSE(denied({.rules = {{"a.com", {{"A", "b"}}}}}, "1.1.1.1", 22));
    EXPECT_TRUE(denied({.egress_proxy = ProxyRequest{"proxy.example:1080", "", ""}}, "1.1.1.1", 22));
}

TEST(Policy, Complement) {
    auto shown = [](std::vector<Cidr> blocks) {
        std::vector<std::string> out;
        for (const Cidr& item : complement(blocks)) out.push_back(to_string(item));
        return out;
    };
    using testing::ElementsAre;
    EXPECT_THAT(shown({}), ElementsAre("0.0.0.0/0"));
    EXPECT_THAT(shown({block("0.0.0.0/0")}), testing::IsEmpty());
    EXPECT_THAT(shown({block("128.0.0.0/1")}), ElementsAre("0.0.0.0/1"));
    EXPECT_THAT(shown({block("0.0.0.0/2"), block("192.0.0.0/2")}), ElementsAre("64.0.0.0/2", "128.0.0.0/2"));
    const std::vector<Cidr> some{block("1.1.1.1"), block("255.255.255.255"), block("0.0.0.0"),
                                 block("10.0.0.0/8")};
    std::vector<Cidr> both = complement(some);
    for (const Cidr& item : both)
        for (const Cidr& other : some) EXPECT_FALSE(item.overlaps(other));
    both.insert(both.end(), some.begin(), some.end());
    EXPECT_THAT(merge(both), ElementsAre(Range{{0}, {UINT32_MAX}}));
}

}  // namespace
}  // namespace gb::net
