// What a sandbox may reach, as a value: made from a client's request, judged without I/O. The packet rules in
// slot_rules.h say the same in nftables; evaluate() is their twin, and a test holds them together.
//
// Order, contract 7.6: closed ranges, then allow, then deny, then accept. Allow beats deny; nothing beats
// closed. A slot that was never given a policy has closed_policy().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"

namespace gb::net {

// The fields of a create or update request, as the client wrote them.
struct NetworkRequest {
    std::optional<bool> allow_internet_access;  // false is deny_out 0.0.0.0/0; true changes nothing
    std::vector<std::string> allow_out;         // addresses, blocks, names, *.names
    std::vector<std::string> deny_out;          // addresses and blocks
};

struct EgressPolicy {
    std::vector<Cidr> allow;
    std::vector<Cidr> deny;
    bool operator==(const EgressPolicy&) const = default;
};

inline constexpr std::size_t kMaxPolicyEntries = 1000;  // of each list

// Errors: invalid_argument with the contract's texts (400), resource_exhausted for too long lists, and
// unimplemented for names in allow_out: packet rules cannot tell names apart, and to leave them out of the
// policy silently would be to pretend. IPv6 entries are valid and have no effect, because a sandbox has no
// IPv6 to open or to close.
Result<EgressPolicy> parse_policy(const NetworkRequest& request);

EgressPolicy closed_policy();  // denies everything
inline EgressPolicy open_policy() {
    return {};
}

// Ranges that no client opens: this network, private (RFC 1918), shared (RFC 6598), loopback, link-local with
// the cloud metadata address, multicast, reserved, broadcast.
std::span<const Cidr> closed_ranges();

enum class Verdict { allow, deny };
std::string_view to_string(Verdict verdict);

struct Ruling {
    Verdict verdict = Verdict::deny;
    std::string rule;  // "private", "closed <block>", "allow <block>", "deny <block>" or "default"
};

// `ceiling`: what this installation closes beside closed_ranges().
Ruling evaluate(const EgressPolicy& policy, std::span<const Cidr> ceiling, Ipv4 address);

}  // namespace gb::net
