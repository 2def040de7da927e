// SPDX-License-Identifier: Apache-2.0
#include "net/conntrack_message.h"

#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include "net/netlink.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

std::string_view nested(std::string_view data, int type) {
    auto attribute = find_attribute(data, type);
    return attribute ? attribute->data : std::string_view{};
}

std::uint32_t be32(std::string_view data, int type) {
    auto attribute = find_attribute(data, type);
    return attribute ? attribute->be32() : 0;
}

std::uint16_t be16(std::string_view data, int type) {
    auto attribute = find_attribute(data, type);
    return attribute ? attribute->be16() : std::uint16_t{0};
}

std::uint64_t bytes_of(std::string_view body, int counters) {
    auto attribute = find_attribute(nested(body, counters), CTA_COUNTERS_BYTES);
    return attribute ? attribute->be64() : 0;
}

}  // namespace

std::optional<Decision> parse_flow(std::string_view body) {
    if (body.size() < sizeof(nfgenmsg)) return std::nullopt;
    body.remove_prefix(sizeof(nfgenmsg));
    const std::string_view tuple = nested(body, CTA_TUPLE_ORIG);
    const std::string_view ip = nested(tuple, CTA_TUPLE_IP);
    const std::string_view proto = nested(tuple, CTA_TUPLE_PROTO);
    if (be32(ip, CTA_IP_V4_SRC) != kGuestAddress.value || !find_attribute(ip, CTA_IP_V4_DST))
        return std::nullopt;
    if ((be32(body, CTA_STATUS) & IPS_DST_NAT) != 0 || be32(body, CTA_MARK) != 1) return std::nullopt;
    auto number = find_attribute(proto, CTA_PROTO_NUM);
    if (!number) return std::nullopt;

    Decision out;
    out.verdict = Verdict::end;
    out.protocol = number->u8();
    out.source = to_string(kGuestAddress);
    out.address = to_string(Ipv4{be32(ip, CTA_IP_V4_DST)});
    if (has_ports(out.protocol)) {
        out.source_port = be16(proto, CTA_PROTO_SRC_PORT);
        out.port = be16(proto, CTA_PROTO_DST_PORT);
    }
    if (auto type = find_attribute(proto, CTA_PROTO_ICMP_TYPE)) out.icmp_type = type->u8();
    out.sent = bytes_of(body, CTA_COUNTERS_ORIG);
    out.received = bytes_of(body, CTA_COUNTERS_REPLY);
    return out;
}

bool is_open_tcp(std::string_view body) {
    if (body.size() < sizeof(nfgenmsg)) return false;
    body.remove_prefix(sizeof(nfgenmsg));
    auto state = find_attribute(nested(nested(body, CTA_PROTOINFO), CTA_PROTOINFO_TCP), CTA_PROTOINFO_TCP_STATE);
    return state && state->u8() >= TCP_CONNTRACK_SYN_SENT && state->u8() < TCP_CONNTRACK_TIME_WAIT;
}

}  // namespace gb::net
