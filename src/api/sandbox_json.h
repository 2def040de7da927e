// SPDX-License-Identifier: Apache-2.0
// Sandboxes as the contract writes them (contract 2.5). Pure.
#pragma once

#include <boost/json/object.hpp>

#include "control/sandboxes.h"

namespace gb::api {

inline constexpr const char* kAgentVersion = "0.9.1";     // decides which features the clients use, contract 3.7
inline constexpr const char* kClientId = "6532622b";      // required by old clients, means nothing

// `domain`: under which sandboxes have host names; empty when they have none.
boost::json::object sandbox_json(const SandboxView& view, const std::string& domain);         // "Sandbox"
boost::json::object sandbox_detail_json(const SandboxView& view, const std::string& domain);  // "SandboxDetail"
boost::json::object listed_sandbox_json(const SandboxRecord& record);

}  // namespace gb::api
