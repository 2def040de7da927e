// SPDX-License-Identifier: Apache-2.0
// The text of the rules. What they do is in egress_live_test; here stands what must never be left out of
// them.
#include "net/slot_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/address_block.h"
#include "net/host_rules.h"

namespace gb::net {
namespace {

using testing::HasSubstr;
using testing::Not;

Cidr cidr(std::string_view text) {
    return std::get<Cidr>(*parse_cidr(text));
}

std::size_t position(const std::string& text, std::string_view what) {
    std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return at;
}

TEST(SlotRules, StartsClosed) {
    std::string rules = slot_rules({.slot_address = *parse_ipv4("10.192.0.2")});
    EXPECT_THAT(rules, HasSubstr("set deny4 { type ipv4_addr; flags interval; elements = { 0.0.0.0/0 } }"));
    EXPECT_THAT(rules, HasSubstr("set allow4 { type ipv4_addr; flags interval; }"));
    for (const char* hook : {"hook input", "hook forward", "hook ingress"}) {
        std::size_t at = position(rules, hook);
        EXPECT_THAT(rules.substr(at, rules.find('\n', at) - at), HasSubstr("policy drop")) << hook;
    }
}

TEST(SlotRules, JudgesInTheOrderOfTheContract) {
    std::string rules = slot_rules({.slot_address = *parse_ipv4("10.192.0.2")});
    std::string outward = rules.substr(position(rules, "chain outward"));
    EXPECT_LT(position(outward, "@closed4"), position(outward, "@ceiling4"));
    EXPECT_LT(position(outward, "@ceiling4"), position(outward, "@allow4"));
    EXPECT_LT(position(outward, "@allow4"), position(outward, "@deny4"));
    EXPECT_LT(position(outward, "@deny4"), position(outward, "ct mark 1 accept")) << "no way round the sets";
}

TEST(SlotRules, HasNoEmptySetElements) {
    std::vector<Cidr> ceiling{cidr("192.0.2.2"), cidr("192.0.2.0/30")};
    EXPECT_THAT(slot_rules({.ceiling = ceiling}), HasSubstr("elements = { 192.0.2.0-192.0.2.3 }"));
    EXPECT_THAT(slot_rules({}), Not(HasSubstr("{  }")));
}

TEST(SlotRules, PrefixesFitTheKernel) {
    // NF_LOG_PREFIXLEN is 128, and a reader splits at the first blank.
    std::string rules = slot_rules({});
    for (std::size_t at = rules.find("prefix \""); at != std::string::npos;
         at = rules.find("prefix \"", at + 1)) {
        std::string prefix = rules.substr(at + 8, rules.find('"', at + 8) - at - 8);
        EXPECT_LT(prefix.size(), 64U);
        EXPECT_TRUE(prefix.starts_with("deny ") || prefix.starts_with("allow ")) << prefix;
    }
}

TEST(HostRules, CarryTheTag) {
    std::string rules = host_rules({.tag = 0x3fa9, .block = cidr("10.200.8.0/21"), .ceiling = {}});
    EXPECT_THAT(rules, HasSubstr("table inet glovebox_3fa9"));
    EXPECT_THAT(rules, HasSubstr("iifname != \"gb3fa9-*\" accept"));
    EXPECT_THAT(rules, HasSubstr("ip saddr 10.200.8.0/21 oifname != \"gb3fa9-*\" masquerade"));
    EXPECT_LE(host_link_prefix(0xffff).size() + 5, 15U) << "interface names have 15 characters";
}

}  // namespace
}  // namespace gb::net
