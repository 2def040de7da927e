// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/loopback.h"

#include <array>
#include <charconv>
#include <memory>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"
#include "guest/agent/reply.h"

namespace gb::agent {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using http::tcp;
constexpr std::size_t kTunnelPiece = 65536;

// A listener of either family; a refused connection on the loopback takes no time.
awaitable<std::shared_ptr<tcp::socket>> dial(std::uint16_t port) {
    const auto executor = co_await asio::this_coro::executor;
    for (const char* address : {"127.0.0.1", "::1"}) {
        auto socket = std::make_shared<tcp::socket>(executor);
        auto [ec] = co_await socket->async_connect({asio::ip::make_address(address), port}, kErrorTuple);
        if (ec) continue;
        socket->set_option(tcp::no_delay(true), ec);
        co_return socket;
    }
    co_return nullptr;
}

awaitable<void> to_service(http::Stream& from, tcp::socket& to, std::string early) {
    auto buffer = std::make_unique<std::array<char, kTunnelPiece>>();
    boost::system::error_code ignored;
    bool good = true;
    if (!early.empty()) {
        auto [ec, written] = co_await asio::async_write(to, asio::buffer(early), kErrorTuple);
        good = !ec;
    }
    while (good) {
        auto [ec, n] = co_await from.read_some(asio::buffer(*buffer));
        if (ec) break;
        auto [write_ec, written] = co_await asio::async_write(to, asio::buffer(buffer->data(), n), kErrorTuple);
        good = !write_ec;
    }
    to.shutdown(tcp::socket::shutdown_send, ignored);
}

awaitable<void> to_host(tcp::socket& from, http::Stream& to) {
    auto buffer = std::make_unique<std::array<char, kTunnelPiece>>();
    for (;;) {
        auto [ec, n] = co_await from.async_read_some(asio::buffer(*buffer), kErrorTuple);
        if (ec) break;
        auto [write_ec, written] = co_await to.write(asio::const_buffer(buffer->data(), n));
        if (write_ec) break;
    }
    co_await to.shutdown_send();
}

}  // namespace

awaitable<void> connect_loopback(http::Exchange& exchange) {
    using namespace asio::experimental::awaitable_operators;
    const std::string text = exchange.target.get("port");
    unsigned port = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (ec != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535 ||
        !exchange.head.headers.lists("Connection", "upgrade"))
        co_return co_await reply_error(exchange, 400, "port must be a number from 1 to 65535, with an upgrade to tcp");
    auto service = co_await dial(static_cast<std::uint16_t>(port));
    if (!service) co_return co_await reply_error(exchange, 502, "nobody listens on this port");
    std::string early;
    auto host = co_await exchange.response.upgrade(
        {101, {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}}}, early);
    if (!host) co_return;
    co_await (to_service(**host, *service, std::move(early)) && to_host(*service, **host));
}

}  // namespace gb::agent
