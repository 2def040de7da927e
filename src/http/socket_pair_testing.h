// SPDX-License-Identifier: Apache-2.0
// For tests: two ends of one connection over the loopback.
#pragma once

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gb::http::testing {

inline boost::asio::awaitable<std::pair<boost::asio::ip::tcp::socket, boost::asio::ip::tcp::socket>>
socket_pair(boost::asio::io_context& io) {
    using boost::asio::ip::tcp;
    tcp::acceptor acceptor(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
    tcp::socket one(io), two(io);
    co_await one.async_connect(acceptor.local_endpoint(), boost::asio::use_awaitable);
    acceptor.accept(two);
    co_return std::pair(std::move(one), std::move(two));
}

}  // namespace gb::http::testing
