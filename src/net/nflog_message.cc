// SPDX-License-Identifier: Apache-2.0
#include "net/nflog_message.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>

#include "net/netlink.h"

namespace gb::net {
namespace {

std::uint8_t byte_at(std::string_view data, std::size_t at) {
    return at < data.size() ? static_cast<std::uint8_t>(data[at]) : std::uint8_t{0};
}

std::uint16_t be16_at(std::string_view data, std::size_t at) {
    return static_cast<std::uint16_t>(byte_at(data, at) << 8 | byte_at(data, at + 1));
}

Ipv4 ipv4_at(std::string_view data, std::size_t at) {
    return {std::uint32_t{be16_at(data, at)} << 16 | be16_at(data, at + 2)};
}

std::string ipv6_at(std::string_view data, std::size_t at) {
    char text[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET6, data.data() + at, text, sizeof text);
    return text;
}

void read_transport(std::string_view data, Decision& out) {
    if (has_ports(out.protocol) && data.size() >= 4) {
        out.source_port = be16_at(data, 0);
        out.port = be16_at(data, 2);
    }
    if (out.protocol == IPPROTO_ICMP || out.protocol == IPPROTO_ICMPV6) out.icmp_type = byte_at(data, 0);
}

void read_ipv4(std::string_view packet, Decision& out) {
    if (packet.size() < 20) return;
    std::size_t header = std::size_t{byte_at(packet, 0) & 15U} * 4;
    out.protocol = byte_at(packet, 9);
    out.source = to_string(ipv4_at(packet, 12));
    out.address = to_string(ipv4_at(packet, 16));
    bool first_fragment = (be16_at(packet, 6) & 0x1fff) == 0;
    if (first_fragment && header >= 20 && header <= packet.size()) read_transport(packet.substr(header), out);
}

// Extension headers (RFC 8200 section 4) are skipped as far as the copy reaches.
void read_ipv6(std::string_view packet, Decision& out) {
    if (packet.size() < 40) return;
    out.source = ipv6_at(packet, 8);
    out.address = ipv6_at(packet, 24);
    std::uint8_t next = byte_at(packet, 6);
    std::size_t at = 40;
    constexpr std::array<std::uint8_t, 3> kOptions{IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_DSTOPTS};
    while (std::ranges::find(kOptions, next) != kOptions.end() && at + 8 <= packet.size()) {
        next = byte_at(packet, at);
        at += (std::size_t{byte_at(packet, at + 1)} + 1) * 8;
    }
    out.protocol = next;
    if (at < packet.size()) read_transport(packet.substr(at), out);
}

}  // namespace

bool nflog_is_packet(std::uint16_t message_type) {
    return message_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
}

std::optional<NflogPacket> parse_nflog(std::string_view body) {
    if (body.size() < sizeof(nfgenmsg)) return std::nullopt;
    NflogPacket out;
    std::string_view prefix;
    std::string_view payload;
    for (const Attribute& attribute : parse_attributes(body.substr(sizeof(nfgenmsg)))) {
        if (attribute.type == NFULA_PREFIX) prefix = attribute.text();
        if (attribute.type == NFULA_PAYLOAD) payload = attribute.data;
        if (attribute.type == NFULA_SEQ) out.sequence = attribute.be32();
    }
    std::size_t blank = prefix.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    std::string_view verdict = prefix.substr(0, blank);
    if (verdict != "allow" && verdict != "deny") return std::nullopt;
    out.decision.verdict = verdict == "allow" ? Verdict::allow : Verdict::deny;
    out.decision.rule = prefix.substr(blank + 1);
    int version = byte_at(payload, 0) >> 4;
    if (version == 4) read_ipv4(payload, out.decision);
    if (version == 6) read_ipv6(payload, out.decision);
    return out;
}

}  // namespace gb::net
