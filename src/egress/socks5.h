// SPDX-License-Identifier: Apache-2.0
// The client's side of SOCKS5 (RFC 1928) with names that the proxy resolves and with user name and password
// (RFC 1929).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "net/cidr.h"

namespace gb::egress {

using SocksTarget = std::variant<std::string, net::Ipv4>;  // a name of at most 255 bytes, or an address

// Over a connection to the proxy: afterwards it is one to the target. Empty username: without authentication.
// permission_denied: the proxy refused us or the target; unavailable: it could not reach it; internal: what
// answers is no SOCKS5 proxy; deadline_exceeded. Texts have nothing of user name or password, nor of what the
// proxy said.
boost::asio::awaitable<Status> socks5_connect(std::shared_ptr<boost::asio::ip::tcp::socket> proxy,
                                              std::string username, std::string password, SocksTarget target,
                                              std::uint16_t port, std::chrono::milliseconds limit);

// Its messages. Pure.
std::string socks5_greeting(bool with_password);
std::string socks5_login(std::string_view username, std::string_view password);  // at most 255 bytes each
std::string socks5_request(const SocksTarget& target, std::uint16_t port);
// What reply code 1…255 means; success for 0.
Status socks5_reply(std::uint8_t code);

}  // namespace gb::egress
