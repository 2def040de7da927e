// SPDX-License-Identifier: Apache-2.0
// Looks at the first bytes of a connection and leaves them where they are.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "egress/client_hello.h"

namespace gb::egress {

// needs_more: the other side said nothing, or not all of it, within the limit or before it ended its
// direction.
boost::asio::awaitable<ClientHello> peek_hello(std::shared_ptr<boost::asio::ip::tcp::socket> socket,
                                               std::chrono::milliseconds limit);

}  // namespace gb::egress
