// SPDX-License-Identifier: Apache-2.0
// Reads what requests say of a sandbox's way out (contract 2.5 SandboxNetworkConfig,
// SandboxNetworkUpdateConfig; 7.6). Pure.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "control/sandbox_network.h"

namespace gb::api {

inline constexpr std::size_t kMaxRulesBody = std::size_t{4} << 20;  // bytes of a request that may hold egress rules

// allowOut, denyOut, rules and egressProxy of an object; `prefix` is what errors put before their names. What
// the fields say has been checked as a policy when this returns, together with what `out` held before.
// invalid_argument: also for what this server cannot do yet.
Status parse_egress(const boost::json::object& object, const std::string& prefix, net::NetworkRequest& out);

// The same fields as they may be given back: without the proxy's password.
boost::json::object shown_egress(const boost::json::object& object);

// The body of PUT /sandboxes/{id}/network.
Result<NetworkUpdate> parse_network_update(std::string_view body);

}  // namespace gb::api
