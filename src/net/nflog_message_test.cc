// SPDX-License-Identifier: Apache-2.0
#include "net/nflog_message.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>

#include <gtest/gtest.h>

#include "net/netlink.h"

namespace gb::net {
namespace {

using namespace std::string_literals;

std::string message(std::string_view prefix, std::string_view packet, std::uint32_t sequence = 0) {
    NetlinkMessage m(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET, 0, nfgenmsg{});
    m.put_string(NFULA_PREFIX, prefix).put_be32(NFULA_SEQ, sequence).put(NFULA_PAYLOAD, packet);
    return std::string(m.finish(0).substr(sizeof(nlmsghdr)));
}

std::string ipv4(std::uint8_t protocol, std::string_view rest, std::uint8_t words = 5,
                 std::uint16_t fragment = 0) {
    std::string p(std::size_t{words} * 4, '\0');
    p[0] = static_cast<char>(0x40 | words);
    p[6] = static_cast<char>(fragment >> 8);
    p[7] = static_cast<char>(fragment);
    p[9] = static_cast<char>(protocol);
    p.replace(12, 8, "\x0a\x0b\x00\x02\x08\x08\x04\x04"s);
    return p + std::string(rest);
}

TEST(Nflog, Tcp) {
    auto packet =
        parse_nflog(message("deny private", ipv4(6, "\x9d\x78\x00\x16"s + std::string(16, '\0')), 41));
    ASSERT_TRUE(packet);
    const Decision& d = packet->decision;
    EXPECT_EQ(packet->sequence, 41U);
    EXPECT_EQ(d.verdict, Verdict::deny);
    EXPECT_EQ(d.rule, "private");
    EXPECT_EQ(d.protocol, 6);
    EXPECT_EQ(d.source, "10.11.0.2");
    EXPECT_EQ(d.address, "8.8.4.4");
    EXPECT_EQ(d.source_port, 40312);
    EXPECT_EQ(d.port, 22);
}

TEST(Nflog, OptionsFragmentsAndIcmp) {
    auto udp = parse_nflog(message("allow default", ipv4(17, "\x00\x35\x01\xbb"s, 8)));
    EXPECT_EQ(udp->decision.port, 443);
    auto fragment = parse_nflog(message("deny denied", ipv4(17, "\x00\x35\x01\xbb"s, 5, 100)));
    EXPECT_EQ(fragment->decision.port, 0) << "contents of a later fragment are no ports";
    auto icmp = parse_nflog(message("deny denied", ipv4(1, "\x08\x00"s)));
    EXPECT_EQ(icmp->decision.icmp_type, 8);
}

TEST(Nflog, Ipv6WithExtensionHeader) {
    std::string p(40, '\0');
    p[0] = 0x60;
    p[6] = 0;  // hop-by-hop options
    p.replace(24, 2, "\x20\x01");
    p += "\x06\x00"s + std::string(6, '\0') + "\x00\x50\x01\xbb"s;
    auto packet = parse_nflog(message("deny ipv6", p));
    EXPECT_EQ(packet->decision.protocol, 6);
    EXPECT_EQ(packet->decision.address, "2001::");
    EXPECT_EQ(packet->decision.port, 443);
}

TEST(Nflog, DamagedInputGivesNothingOrLess) {
    EXPECT_FALSE(parse_nflog(""));
    EXPECT_FALSE(parse_nflog(message("nonsense", ipv4(6, ""))));
    EXPECT_FALSE(parse_nflog(message("accept x", ipv4(6, ""))));
    EXPECT_TRUE(parse_nflog(message("deny private", "")));
    EXPECT_EQ(parse_nflog(message("deny private", ipv4(6, "\x00"s)))->decision.port, 0);
    std::string lies = ipv4(6, "abcd");
    lies[0] = 0x4f;  // a header longer than the packet
    EXPECT_EQ(parse_nflog(message("deny private", lies))->decision.port, 0);
    std::string whole = message("deny private", ipv4(6, std::string(20, 'x')));
    for (std::size_t n = 0; n < whole.size(); ++n) (void)parse_nflog(std::string_view(whole).substr(0, n));
}

}  // namespace
}  // namespace gb::net
