// SPDX-License-Identifier: Apache-2.0
// Which sandbox and which of its ports a request is for. Pure (contract 1.7, 7.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace gb::ingress {

struct Route {
    std::string sandbox_id;
    std::uint16_t port = 0;
};

// Nothing when the request is for the control plane. Headers E2b-Sandbox-Id and E2b-Sandbox-Port decide only where the
// Host is an address, `localhost` or `sandbox.<domain>`; on any other Host the name "<port>-<id>.<domain>" decides, so
// that a page of one sandbox cannot send requests to another by adding headers. invalid_argument: it is for a sandbox,
// but malformed.
Result<std::optional<Route>> find_route(const http::RequestHead& head);

// The agent's port answers only these paths from outside; all others belong to the control plane.
bool agent_path_is_public(std::string_view path);

}  // namespace gb::ingress
