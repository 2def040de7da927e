// SPDX-License-Identifier: Apache-2.0
#include "egress/socks5.h"

#include <array>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"

namespace gb::egress {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
constexpr char kVersion = 5, kLoginVersion = 1;
constexpr unsigned char kNoLogin = 0, kWithPassword = 2;

template <std::size_t size>
using Bytes = std::array<unsigned char, size>;

awaitable<Status> send(tcp::socket& socket, std::string bytes) {
    auto [ec, n] = co_await asio::async_write(socket, asio::buffer(bytes), kErrorTuple);
    if (ec) co_return fail(ErrorCode::unavailable, "the egress proxy closed the connection");
    co_return Status{};
}

template <std::size_t size>
awaitable<Result<Bytes<size>>> receive(tcp::socket& socket) {
    Bytes<size> bytes{};
    auto [ec, n] = co_await asio::async_read(socket, asio::buffer(bytes), kErrorTuple);
    if (ec) co_return fail(ErrorCode::unavailable, "the egress proxy closed the connection");
    co_return bytes;
}

std::unexpected<Error> no_proxy() {
    return fail(ErrorCode::internal, "what answers at the egress proxy's address is no SOCKS5 proxy");
}

awaitable<Status> converse(tcp::socket& socket, std::string username, std::string password,
                           SocksTarget target, std::uint16_t port) {
    const bool login = !username.empty();
    GB_CO_TRY(co_await send(socket, socks5_greeting(login)));
    GB_CO_TRY_ASSIGN(const auto method, co_await receive<2>(socket));
    if (method[0] != kVersion) co_return no_proxy();
    if (method[1] == kWithPassword && login) {
        GB_CO_TRY(co_await send(socket, socks5_login(username, password)));
        GB_CO_TRY_ASSIGN(const auto status, co_await receive<2>(socket));
        if (status[1] != 0)
            co_return fail(ErrorCode::permission_denied, "the egress proxy refused user name and password");
    } else if (method[1] != kNoLogin) {
        co_return fail(ErrorCode::permission_denied, "the egress proxy wants another kind of authentication");
    }
    GB_CO_TRY(co_await send(socket, socks5_request(target, port)));
    GB_CO_TRY_ASSIGN(const auto head, co_await receive<4>(socket));
    if (head[0] != kVersion) co_return no_proxy();
    GB_CO_TRY(socks5_reply(head[1]));
    // The address that it is bound to, which says nothing to us.
    std::size_t left = 2;
    if (head[3] == 1) {
        left += 4;
    } else if (head[3] == 4) {
        left += 16;
    } else if (head[3] == 3) {
        GB_CO_TRY_ASSIGN(const auto length, co_await receive<1>(socket));
        left += length[0];
    } else {
        co_return no_proxy();
    }
    std::array<char, 2 + 255> bound{};
    auto [ec, n] = co_await asio::async_read(socket, asio::buffer(bound, left), kErrorTuple);
    if (ec) co_return fail(ErrorCode::unavailable, "the egress proxy closed the connection");
    co_return Status{};
}

}  // namespace

std::string socks5_greeting(bool with_password) {
    if (with_password) return {kVersion, 1, static_cast<char>(kWithPassword)};
    return {kVersion, 1, static_cast<char>(kNoLogin)};
}

std::string socks5_login(std::string_view username, std::string_view password) {
    std::string out{kLoginVersion, static_cast<char>(username.size())};
    out += username;
    out.push_back(static_cast<char>(password.size()));
    return out += password;
}

std::string socks5_request(const SocksTarget& target, std::uint16_t port) {
    std::string out{kVersion, 1, 0};
    if (const auto* name = std::get_if<std::string>(&target)) {
        out.push_back(3);
        out.push_back(static_cast<char>(name->size()));
        out += *name;
    } else {
        out.push_back(1);
        const std::uint32_t value = std::get<net::Ipv4>(target).value;
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
    }
    out.push_back(static_cast<char>(port >> 8));
    out.push_back(static_cast<char>(port));
    return out;
}

Status socks5_reply(std::uint8_t code) {
    switch (code) {
        case 0:
            return {};
        case 2:
            return fail(ErrorCode::permission_denied, "the egress proxy does not allow this destination");
        case 3:
            return fail(ErrorCode::unavailable, "the egress proxy cannot reach the network");
        case 4:
            return fail(ErrorCode::unavailable, "the egress proxy cannot reach the host");
        case 5:
            return fail(ErrorCode::unavailable, "the destination refused the egress proxy's connection");
        case 6:
            return fail(ErrorCode::unavailable, "the egress proxy got no answer in time");
        default:
            return fail(ErrorCode::unavailable, "the egress proxy failed");
    }
}

awaitable<Status> socks5_connect(std::shared_ptr<tcp::socket> proxy, std::string username,
                                 std::string password, SocksTarget target, std::uint16_t port,
                                 std::chrono::milliseconds limit) {
    if (const auto* name = std::get_if<std::string>(&target);
        name != nullptr && (name->empty() || name->size() > 255))
        co_return fail(ErrorCode::invalid_argument, "a name for the egress proxy has 1 to 255 bytes");
    asio::steady_timer timer(proxy->get_executor(), limit);
    auto over = std::make_shared<bool>(false);
    timer.async_wait([proxy, over](const boost::system::error_code& ec) {
        boost::system::error_code ignored;
        if (ec || *over) return;
        *over = true;
        proxy->close(ignored);
    });
    Status status =
        co_await converse(*proxy, std::move(username), std::move(password), std::move(target), port);
    if (*over) co_return fail(ErrorCode::deadline_exceeded, "the egress proxy did not answer in time");
    *over = true;
    timer.cancel();
    co_return status;
}

}  // namespace gb::egress
