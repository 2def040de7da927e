// SPDX-License-Identifier: Apache-2.0
// Sockets with a limit for every step, for probes. Errors carry errno's text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::probe {

using Patience = std::chrono::milliseconds;

// Connected TCP to an address of IPv4 or IPv6; non-blocking.
Result<UniqueFd> connect_tcp(const std::string& address, std::uint16_t port, Patience patience);
// A socket of IPv4 that is connected to that address, non-blocking: errors that come back as ICMP are seen.
Result<UniqueFd> connect_datagram(int type, int protocol, const std::string& address, std::uint16_t port);

Status send_all(int fd, std::string_view bytes, Patience patience);
// What comes next; empty at the end. deadline_exceeded: nothing came.
Result<std::string> receive(int fd, Patience patience);
// Whether it can be read (or written) within that time.
bool wait_for(int fd, short events, Patience patience);

}  // namespace gb::probe
