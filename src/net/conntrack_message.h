// SPDX-License-Identifier: Apache-2.0
// What the kernel's connection tracking says of a connection,
// include/uapi/linux/netfilter/nfnetlink_conntrack.h, as the end of an allowed connection. Pure; safe on any
// bytes.
#pragma once

#include <optional>
#include <string_view>

#include "net/decision.h"

namespace gb::net {

// `body`: what follows the netlink header of a new or delete message. nullopt for connections that are no
// decision of the packet rules: those that the guest did not begin, that were redirected to the resolver or
// the proxy (they count themselves), that were never accepted (ct mark), and other families than IPv4.
// time_ms is left to the caller.
std::optional<Decision> parse_flow(std::string_view body);
// Whether it is TCP that neither end has closed.
bool is_open_tcp(std::string_view body);

}  // namespace gb::net
