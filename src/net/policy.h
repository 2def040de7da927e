// SPDX-License-Identifier: Apache-2.0
// What a sandbox may reach, as a value: made from a client's request and the operator's ceiling, judged
// without I/O.
//
// Order (contract 7.6): closed ranges, the ceiling, then allow, then deny, then accept. Allow beats deny;
// nothing beats closed. A slot that was never given a policy has closed_policy().
//
// judge() is what packet rules, resolver and name proxy all say: packet_sets() makes the sets from which the
// rules in slot_rules.h come to the same verdict, or hand a connection to the proxy where an address alone
// does not decide it. Tests hold them together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"
#include "net/host_name.h"
#include "net/network_request.h"

namespace gb::net {

struct HeaderRules {  // headers that are set on requests to the hosts that `host` matches
    NamePattern host;
    std::vector<HeaderRule> headers;
    bool operator==(const HeaderRules&) const = default;
};

struct ProxyAddress {  // of the client's SOCKS5 proxy
    Host host;         // a name or an IPv4 address
    std::uint16_t port = 0;
    std::string username, password;
    bool operator==(const ProxyAddress&) const = default;
};

struct EgressPolicy {
    std::vector<Cidr> allow;
    std::vector<Cidr> deny;
    std::vector<NamePattern> names;  // allowed by name, on the web's ports; `deny` has 0.0.0.0/0 then
    std::vector<HeaderRules> rules;
    std::optional<ProxyAddress> proxy;
    bool operator==(const EgressPolicy&) const = default;
};

inline constexpr std::size_t kMaxPolicyEntries = 1000;  // of each list

// Errors: invalid_argument with the contract's texts (400). IPv6 entries are valid and have no effect,
// because a sandbox has no IPv6 to open or to close. Header rules are taken as they are: what they may say is
// egress/header_rules.h's.
Result<EgressPolicy> parse_policy(const NetworkRequest& request);

EgressPolicy closed_policy();  // denies everything
inline EgressPolicy open_policy() {
    return {};
}

// What no client of this installation opens, whatever it says, beside closed_ranges().
struct Ceiling {
    std::vector<Cidr> closed;
    std::vector<NamePattern> closed_names;
    // Only what is listed here leaves; otherwise the two lists say nothing.
    bool only_listed = false;
    std::vector<Cidr> open;
    std::vector<NamePattern> open_names;
    bool operator==(const Ceiling&) const = default;
};

// Ranges that nobody opens: this network, private (RFC 1918), shared (RFC 6598), loopback, link-local with
// the cloud metadata address, multicast, reserved, broadcast.
std::span<const Cidr> closed_ranges();

enum class Verdict { allow, deny, end };  // end: an allowed connection is over; never a judgement
std::string_view to_string(Verdict verdict);

struct Ruling {
    Verdict verdict = Verdict::deny;
    // "private", "closed", "closed <block or name>", "allow <block or name>", "deny <block>" or "default".
    std::string rule;
    [[nodiscard]] bool allowed() const { return verdict == Verdict::allow; }
};

// Why nobody reaches the address, whatever a policy says, names or the operator's lists of what leaves:
// "private" or "closed <block>".
std::optional<std::string> closed_to_all(const Ceiling& ceiling, Ipv4 address);

// A connection to `address`. `name`, canonical, is given where a name was asked for and this server itself
// resolved it to the address: only then may the address be allowed for the name's sake.
Ruling judge(const EgressPolicy& policy, const Ceiling& ceiling, Ipv4 address,
             std::optional<std::string_view> name = std::nullopt);
// A name before it has an address, for the resolver. The addresses are judged for themselves.
Ruling judge_name(const EgressPolicy& policy, const Ceiling& ceiling, std::string_view name);

// The rules for requests to this name: of all patterns that match, exact ones last, so that they win. Empty:
// none.
std::vector<HeaderRule> header_rules(const EgressPolicy& policy, std::string_view name);

// What the packet rules need to know, as sets of destinations.
struct PacketSets {
    std::vector<Cidr> allow, deny;
    std::vector<Cidr> named;       // TCP to the web's ports goes to the name proxy
    std::vector<Cidr> tunneled;    // all TCP does, and nothing else leaves
    std::vector<Cidr> udp_closed;  // UDP cannot be told by name
    std::vector<Cidr> quic_closed;
    bool operator==(const PacketSets&) const = default;
};
PacketSets packet_sets(const EgressPolicy& policy, const Ceiling& ceiling);

// The addresses that are in none of the blocks.
std::vector<Cidr> complement(std::span<const Cidr> blocks);

}  // namespace gb::net
