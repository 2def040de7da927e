// SPDX-License-Identifier: Apache-2.0
// What is tried to prove where a sandbox can go, and what its policy says of each. Pure.
//
// The policy is read from what the server says is in force, and judged by the same function as there: what is
// proved is that packets go as the policy says, not that the policy is a good one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "base/result.h"
#include "net/policy.h"
#include "probe/probe.h"

namespace gb::cli {

// GET /glovebox/sandboxes/{id}/network, read back.
struct PolicyInForce {
    net::EgressPolicy policy;
    net::Ceiling ceiling;
    std::vector<std::string> resolvers;  // addresses, without ports
};
// failed_precondition: nothing is in force, because the sandbox does not run.
Result<PolicyInForce> read_policy_in_force(const boost::json::value& answer);

// Where it is tried. Names have the address that the host got for them, if it got one.
struct Surroundings {
    std::vector<net::Ipv4> addresses;  // public ones
    std::map<std::string, std::optional<net::Ipv4>> names;
    std::vector<net::Ipv4> host;   // the host's own
    std::vector<net::Ipv4> slots;  // of sandboxes beside it
    std::uint16_t server_port = 0;
};

struct Target {
    std::string what;         // "DNS over TLS"
    std::string destination;  // "8.8.8.8 port 853"
    probe::Probe inside;
    std::optional<probe::Probe> control;  // the same from the host; nothing: there it would prove nothing
    bool allowed = false;                 // what the policy says,
    std::string rule;                     // and why
    // How the decision log names it.
    std::string log_protocol, log_address, log_name;
    std::uint16_t log_port = 0;
};

std::vector<Target> egress_targets(const PolicyInForce& in_force, const Surroundings& around);
// Names that the policy speaks of, one below each wildcard, and one that nobody lists.
std::vector<std::string> names_to_try(const PolicyInForce& in_force);

}  // namespace gb::cli
