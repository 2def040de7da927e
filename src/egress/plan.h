// SPDX-License-Identifier: Apache-2.0
// What becomes of a connection that came to the name proxy. Pure: the decision and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/policy.h"

namespace gb::egress {

enum class Way {
    refuse,
    direct,       // to the address that the guest wanted, whatever name it says
    resolved,     // the same, if the name is known to have that address
    intercepted,  // likewise, and its requests get headers: TLS ends here
};

struct Plan {
    Way way = Way::refuse;
    std::string rule;                      // as net::Ruling's, or "no-name"
    std::vector<net::HeaderRule> headers;  // Way::intercepted only
    bool operator==(const Plan&) const = default;
};

// `name`: what the connection says that it wants, canonical; nullopt when it says none. `synthetic`: the
// address is one that stands for the name (synthetic_names.h), so only the name is judged.
//
// A name can open what an address does not; then, and where headers are to be set, the name must be proved.
Plan plan(const net::EgressPolicy& policy, const net::Ceiling& ceiling, net::Ipv4 address,
          std::optional<std::string_view> name, bool synthetic = false);

}  // namespace gb::egress
