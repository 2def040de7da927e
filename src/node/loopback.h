// SPDX-License-Identifier: Apache-2.0
// The way to services that listen on a guest's loopback only: its agent carries the bytes.
#pragma once

#include <cstdint>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

namespace gb {

// `agent`: a fresh connection to the agent. On success it leads to the port, with nothing of the service's bytes taken.
// connection_refused when nobody listens there; whatever the guest says otherwise is a protocol_error.
boost::asio::awaitable<boost::system::error_code> ask_loopback(boost::asio::ip::tcp::socket& agent, std::uint16_t port);

}  // namespace gb
