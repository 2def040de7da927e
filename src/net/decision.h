// SPDX-License-Identifier: Apache-2.0
// One decision about what a sandbox tried to reach, and the line of its decision log that says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/policy.h"

namespace gb::net {

struct Decision {
    std::int64_t time_ms = 0;  // wall clock
    Verdict verdict = Verdict::deny;
    std::uint8_t protocol = 0;  // IANA number: 1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6
    std::string source;         // address; the guest's own except for spoofed-source
    std::string address;  // where to, IPv4 or IPv6; of a question for a name the server that the guest asked
    std::uint16_t source_port = 0;
    std::uint16_t port = 0;      // where to; TCP, UDP, SCTP and UDP-Lite only
    std::uint8_t icmp_type = 0;  // ICMP and ICMPv6 only
    // private, closed, "closed <block or name>", "allow <block or name>", "deny <block>", default:
    // net::judge(). Of packets: spoofed-source, ipv6, host-closed, invalid, stale-connection,
    // too-many-connections; udp-closed (names are in force), proxy-only (all goes through the client's
    // proxy), by-name (it was open when a policy came that wants to see names). Of names: no-name,
    // invalid-name, not-of-name (the address is none that the name has), unresolved, unreachable, header-rule
    // (could not be applied), query-type.
    std::string rule;
    std::string name;      // of the destination, where it is known; packet rules do not know it
    std::string question;  // the type that was asked for, "A"; of DNS only
    // Verdict::end only: what its connection has carried, from the guest and to it.
    std::uint64_t sent = 0, received = 0;
};

bool has_ports(std::uint8_t protocol);
std::string protocol_name(std::uint8_t protocol);  // "tcp"; a number where there is no common name

// A JSON object and a newline:
// {"time":"…","verdict":"deny","protocol":"tcp","address":"10.0.0.1","port":22,"source_port":40312,"rule":"private"}
// {"time":"…","verdict":"deny","protocol":"dns","name":"evil.com","question":"A","rule":"deny 0.0.0.0/0"}
// {"time":"…","verdict":"end","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":40312,"sent":517,"received":90}
std::string decision_line(const Decision& decision);

// Packet rules know only that some block matched. Names the block, from the policy that is in force now.
void name_rule(Decision& decision, const EgressPolicy& policy, const Ceiling& ceiling);

}  // namespace gb::net
