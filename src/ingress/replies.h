// SPDX-License-Identifier: Apache-2.0
// What the ingress says when it cannot pass a request on: JSON for programs, a small page for browsers (contract 7.4).
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ingress/route.h"

namespace gb::ingress {

struct Reply {
    int status;
    std::string content_type;
    std::string body;
};

Reply sandbox_not_found(const std::string& sandbox_id, bool browser);
Reply port_not_open(const Route& route, bool browser);
enum class BadToken { missing, invalid };
Reply token_refused(const Route& route, BadToken what, bool browser);
// A request to the agent of a sandbox that sleeps, which the agent would refuse.
Reply access_refused(const Route& route, bool browser);
// A sandbox that could not be woken, or is on its way to another state.
Reply not_ready(const Route& route, const Error& error, bool browser);
Reply reserved_path();
Reply refusal(const Error& error);

bool is_browser(std::string_view user_agent);

}  // namespace gb::ingress
