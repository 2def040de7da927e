// SPDX-License-Identifier: Apache-2.0
#include "net/flow_cut.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/internet_checksum.h"
#include "base/unique_fd.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

struct Frame {
    ether_header ether;
    iphdr ip;
    tcphdr tcp;
} __attribute__((packed));

// Its numbers are zero: a window is so small beside all numbers that it hardly ever holds them, and when it
// does, an acknowledgement of nothing is answered too.
Frame segment(const Decision& flow, Ipv4 from) {
    Frame out{};
    std::ranges::copy(kGuestMac, out.ether.ether_dhost);
    std::ranges::copy(kTapMac, out.ether.ether_shost);
    out.ether.ether_type = htons(ETHERTYPE_IP);
    iphdr ip{};
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.ttl = 64;
    ip.protocol = IPPROTO_TCP;
    ip.tot_len = htons(sizeof(iphdr) + sizeof(tcphdr));
    ip.saddr = htonl(from.value);
    ip.daddr = htonl(kGuestAddress.value);
    ip.check = htons(internet_checksum(add_words(0, &ip, sizeof ip)));
    tcphdr tcp{};
    tcp.source = htons(flow.port);
    tcp.dest = htons(flow.source_port);
    tcp.doff = sizeof tcp / 4;
    tcp.ack = 1;
    std::uint32_t sum = add_words(IPPROTO_TCP + sizeof tcp, &ip.saddr, sizeof ip.saddr + sizeof ip.daddr);
    tcp.check = htons(internet_checksum(add_words(sum, &tcp, sizeof tcp)));
    std::memcpy(&out.ip, &ip, sizeof ip);
    std::memcpy(&out.tcp, &tcp, sizeof tcp);
    return out;
}

}  // namespace

bool denies_packets(const EgressPolicy& policy, const Ceiling& ceiling, const PacketSets& sets, Ipv4 address,
                    std::uint16_t port) {
    return !judge(policy, ceiling, address).allowed() || within(sets.tunneled, address) ||
           ((port == 80 || port == 443) && within(sets.named, address));
}

Status provoke_resets(std::span<const Decision> flows) {
    if (flows.empty()) return {};
    const UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("open packet socket in network slot");
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(::if_nametoindex(std::string(kGuestLink).c_str()));
    to.sll_halen = ETH_ALEN;
    std::ranges::copy(kGuestMac, to.sll_addr);
    for (const Decision& flow : flows) {
        const auto from = parse_ipv4(flow.address);
        if (flow.protocol != IPPROTO_TCP || !from) continue;
        const Frame frame = segment(flow, *from);
        if (::sendto(fd.get(), &frame, sizeof frame, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) <
            0)
            return fail_errno("send to a guest");
    }
    return {};
}

}  // namespace gb::net
