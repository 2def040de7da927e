// SPDX-License-Identifier: Apache-2.0
#include "node/loopback.h"

#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"

namespace gb {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
namespace errc = boost::system::errc;
constexpr std::size_t kMaxHead = 4096;

boost::system::error_code verdict(std::string_view head) {
    if (head.starts_with("HTTP/1.1 101 ")) return {};
    if (head.starts_with("HTTP/1.1 502 ")) return asio::error::connection_refused;
    return errc::make_error_code(errc::protocol_error);
}

}  // namespace

asio::awaitable<boost::system::error_code> ask_loopback(tcp::socket& agent, std::uint16_t port) {
    const std::string request = fmt::format(
        "GET /loopback?port={} HTTP/1.1\r\nHost: agent\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n", port);
    auto [write_ec, written] = co_await asio::async_write(agent, asio::buffer(request), kErrorTuple);
    if (write_ec) co_return write_ec;
    // Behind the head come the service's own bytes: look first, take no more than the head.
    std::string head;
    std::array<char, kMaxHead> buffer{};
    while (head.size() < kMaxHead) {
        auto [wait_ec] = co_await agent.async_wait(tcp::socket::wait_read, kErrorTuple);
        if (wait_ec) co_return wait_ec;
        boost::system::error_code ec;
        const std::size_t seen = agent.receive(asio::buffer(buffer.data(), kMaxHead - head.size()), MSG_PEEK, ec);
        if (ec == asio::error::would_block) continue;
        if (ec) co_return ec;
        const std::size_t before = head.size();
        head.append(buffer.data(), seen);
        const std::size_t end = head.find("\r\n\r\n");
        const std::size_t take = end == std::string::npos ? seen : end + 4 - before;
        agent.receive(asio::buffer(buffer.data(), take), 0, ec);
        if (ec) co_return ec;
        if (end != std::string::npos) co_return verdict(head);
    }
    co_return errc::make_error_code(errc::protocol_error);
}

}  // namespace gb
