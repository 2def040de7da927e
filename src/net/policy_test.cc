// Contract 7.6: what is accepted, what is refused and in which words, what it means.
#include "net/policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::net {
namespace {

using namespace std::string_literals;

constexpr std::string_view kNeedsDenyAll =
    "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all "
    "other "
    "traffic.";

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
        {"domain with deny-all",
         {.allow_out = {"Example.com"}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::unimplemented,
         ""},
        {"wildcard with deny-all",
         {.allow_out = {"8.8.8.8", "*.example.com"}, .deny_out = {"0.0.0.0/0"}},
         ErrorCode::unimplemented,
         ""},
        {"star with deny-all", {.allow_out = {"*"}, .deny_out = {"0.0.0.0/0"}}, ErrorCode::unimplemented, ""},
        {"domain without internet",
         {.allow_internet_access = false, .allow_out = {"example.com"}},
         ErrorCode::unimplemented,
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
    const std::vector<Cidr> ceiling{std::get<Cidr>(*parse_cidr("192.0.2.0/24"))};
    for (const Meaning& c : kCases) {
        auto policy = parse_policy(c.request);
        ASSERT_TRUE(policy) << c.name << ": " << policy.error().message;
        for (const std::string& line : c.expected) {
            std::string address = line.substr(0, line.find(' '));
            Ruling ruling = evaluate(*policy, ceiling, *parse_ipv4(address));
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
        EXPECT_EQ(evaluate(open_policy(), {}, *parse_ipv4(address)).rule, "private") << address;
    for (const char* address :
         {"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
          "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
          "192.169.0.0", "223.255.255.255"})
        EXPECT_EQ(evaluate(open_policy(), {}, *parse_ipv4(address)).rule, "default") << address;
}

TEST(Policy, ClosedDeniesEverything) {
    EXPECT_EQ(evaluate(closed_policy(), {}, *parse_ipv4("8.8.8.8")).verdict, Verdict::deny);
    EXPECT_EQ(evaluate(closed_policy(), {}, *parse_ipv4("0.0.0.0")).verdict, Verdict::deny);
}

}  // namespace
}  // namespace gb::net
