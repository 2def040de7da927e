// SPDX-License-Identifier: Apache-2.0
// What a proxy takes off a message on its way (RFC 9110 7.6.1). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "http/message.h"

namespace gb::http {

// Whether the client asks for another protocol on its connection.
bool wants_upgrade(const Headers& headers);

// Takes off what speaks of one connection only: the headers of that kind, and those that Connection names,
// except Host, which no client may take away. `keep_upgrade` leaves Upgrade and a Connection that names it.
void strip_hop_by_hop(Headers& headers, bool keep_upgrade);

// The length of a body: a number, unknown (chunked), or zero.
std::optional<std::uint64_t> body_length(const Headers& headers);

}  // namespace gb::http
