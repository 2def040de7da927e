// SPDX-License-Identifier: Apache-2.0
// The packet rules inside a slot, as text for `nft -f -`: one transaction that is applied once, when the slot
// is made. A policy set later changes the elements of sets and nothing else (policy.h, PacketSets).
//
// Table netdev glovebox, frames as they leave the guest: IPv4 and ARP requests pass, all else is dropped.
// Table inet glovebox, packets:
//   from the guest   source must be the guest's. DNS to any server whatever goes to our resolver, and TCP
//   that only a
//                    name decides to our proxy (both in EgressSockets); the rest is judged here: closed
//                    ranges are refused; then the allow set, then the deny set, then accept. Every packet is
//                    judged, not only the first, so that a policy that changes cuts the connections that it
//                    denies.
//   to the guest     only what belongs to a connection that the guest opened and that the policy still
//   allows. to the slot      only what was redirected, and answers to what this side opened; all else is
//   dropped: the host is
//                    closed.
//   from the slot    the proxy's connections: closed ranges are closed to it too.
// Refused is a TCP reset or an ICMP error, at once. A TCP connection that does not begin with SYN was
// captured in a snapshot and belongs to another sandbox: reset. Decisions are logged to NFLOG with a prefix
// of verdict and rule, once for a connection that is allowed, for each packet that is denied, both within a
// rate; what goes beyond it is counted in `unlogged`. What resolver and proxy decide they log themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/cidr.h"
#include "net/links.h"

namespace gb::net {

// The same in every slot: a guest that is restored elsewhere finds its network unchanged.
inline constexpr Ipv4 kTapAddress{0x0A0B0001};    // 10.11.0.1/30
inline constexpr Ipv4 kGuestAddress{0x0A0B0002};  // 10.11.0.2/30
inline constexpr int kGuestPrefix = 30;
inline constexpr Mac kTapMac{0x02, 0x67, 0x62, 0x00, 0x00, 0x01};
inline constexpr Mac kGuestMac{0x02, 0x67, 0x62, 0x00, 0x00, 0x02};

inline constexpr std::string_view kGuestLink = "tap0";
inline constexpr std::string_view kUplink = "up0";
inline constexpr std::string_view kTable = "glovebox";
inline constexpr std::string_view kAllowSet = "allow4";
inline constexpr std::string_view kDenySet = "deny4";
inline constexpr std::string_view kNamedSet = "named4";
inline constexpr std::string_view kTunneledSet = "tunneled4";
inline constexpr std::string_view kUdpSet = "udp4";
inline constexpr std::string_view kQuicSet = "quic4";
inline constexpr std::string_view kUnloggedCounter = "unlogged";
inline constexpr std::uint16_t kSlotLogGroup = 1;  // groups are counted per namespace

// Of kTapAddress; a guest reaches them by being redirected only.
inline constexpr std::uint16_t kDnsPort = 53;
inline constexpr std::uint16_t kProxyPort = 3128;

struct SlotRules {
    Ipv4 slot_address;              // what the guest's packets get as source towards the host
    std::span<const Cidr> ceiling;  // closed here beside closed_ranges()
    std::span<const Cidr> beyond;   // closed to packets; the proxy may know better
    unsigned max_connections = 2500;
};
std::string slot_rules(const SlotRules& options);

// Two nft statements that log within the rate or else count, and end with `verdict`.
std::string log_rules(std::string_view prefix, std::uint16_t group, std::string_view verdict);
// "{ 1.2.3.0/24, 5.6.7.8 }" of merged ranges; `blocks` must not be empty.
std::string set_elements(std::span<const Cidr> blocks);

}  // namespace gb::net
