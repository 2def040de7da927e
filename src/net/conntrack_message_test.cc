// SPDX-License-Identifier: Apache-2.0
#include "net/conntrack_message.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include <gtest/gtest.h>

#include "net/netlink.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

struct Flow {
    std::uint32_t source = kGuestAddress.value;
    std::uint32_t status = IPS_CONFIRMED | IPS_SRC_NAT;
    std::uint32_t mark = 1;
    std::optional<std::uint8_t> tcp_state = TCP_CONNTRACK_ESTABLISHED;
};

std::string be64(std::uint64_t value) {
    std::string out;
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
    return out;
}

std::string message(const Flow& flow) {
    nfgenmsg header{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0};
    NetlinkMessage out(0, 0, header);
    out.begin(CTA_TUPLE_ORIG).begin(CTA_TUPLE_IP);
    out.put_be32(CTA_IP_V4_SRC, flow.source).put_be32(CTA_IP_V4_DST, 0x08080808).end();
    out.begin(CTA_TUPLE_PROTO).put_u8(CTA_PROTO_NUM, 6).put_be16(CTA_PROTO_SRC_PORT, 40000);
    out.put_be16(CTA_PROTO_DST_PORT, 443).end().end();
    out.put_be32(CTA_STATUS, flow.status).put_be32(CTA_MARK, flow.mark);
    out.begin(CTA_COUNTERS_ORIG).put(CTA_COUNTERS_BYTES, be64(1000)).end();
    out.begin(CTA_COUNTERS_REPLY).put(CTA_COUNTERS_BYTES, be64(std::uint64_t{5} << 32)).end();
    if (flow.tcp_state)
        out.begin(CTA_PROTOINFO)
            .begin(CTA_PROTOINFO_TCP)
            .put_u8(CTA_PROTOINFO_TCP_STATE, *flow.tcp_state)
            .end()
            .end();
    return std::string(out.finish(1).substr(sizeof(nlmsghdr)));
}

TEST(ConntrackMessage, SaysWhatAConnectionCarried) {
    auto end = parse_flow(message({}));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->verdict, Verdict::end);
    EXPECT_EQ(end->protocol, 6);
    EXPECT_EQ(end->address, "8.8.8.8");
    EXPECT_EQ(end->port, 443);
    EXPECT_EQ(end->source_port, 40000);
    EXPECT_EQ(end->sent, 1000U);
    EXPECT_EQ(end->received, std::uint64_t{5} << 32);
}

TEST(ConntrackMessage, LeavesOutWhatIsNoDecisionOfPackets) {
    EXPECT_FALSE(parse_flow(message({.source = 0x01020304}))) << "from outside";
    EXPECT_FALSE(parse_flow(message({.status = IPS_CONFIRMED | IPS_DST_NAT}))) << "redirected";
    EXPECT_FALSE(parse_flow(message({.mark = 0}))) << "denied";
    EXPECT_FALSE(parse_flow(""));
    const std::string whole = message({});
    for (std::size_t size = 0; size < whole.size(); ++size)
        (void)parse_flow(std::string_view(whole).substr(0, size));
}

TEST(ConntrackMessage, KnowsWhatIsOpen) {
    for (const std::uint8_t state :
         {TCP_CONNTRACK_SYN_SENT, TCP_CONNTRACK_ESTABLISHED, TCP_CONNTRACK_CLOSE_WAIT})
        EXPECT_TRUE(is_open_tcp(message({.tcp_state = state}))) << int{state};
    for (const std::uint8_t state : {TCP_CONNTRACK_NONE, TCP_CONNTRACK_TIME_WAIT, TCP_CONNTRACK_CLOSE})
        EXPECT_FALSE(is_open_tcp(message({.tcp_state = state}))) << int{state};
    EXPECT_FALSE(is_open_tcp(message({.tcp_state = std::nullopt}))) << "another protocol";
    const std::string whole = message({});
    EXPECT_FALSE(is_open_tcp(whole.substr(0, 3)));
}

}  // namespace
}  // namespace gb::net
