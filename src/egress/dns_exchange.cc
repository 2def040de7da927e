// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_exchange.h"

#include <array>
#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"
#include "base/ids.h"
#include "egress/dns_wire.h"

namespace gb::egress {
namespace {

using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;
using Time = std::chrono::steady_clock::time_point;

constexpr int kMaxStrangers = 16;

// A socket that is closed at a time, or by a Cut, which may both come when the exchange is over.
template <class Socket>
class LimitedSocket {
  public:
    LimitedSocket(const asio::any_io_executor& executor, Time until, Cut& cut)
        : socket_(std::make_shared<Socket>(executor)), timer_(executor, until), cut_(cut) {
        timer_.async_wait([socket = socket_](error_code ec) {
            if (!ec) close(*socket);
        });
        cut_.set([socket = socket_] { close(*socket); });
    }
    LimitedSocket(const LimitedSocket&) = delete;
    ~LimitedSocket() {
        cut_.set({});
        close(*socket_);
    }
    Socket& operator*() { return *socket_; }
    Socket* operator->() { return socket_.get(); }

  private:
    static void close(Socket& socket) {
        error_code ignored;
        socket.close(ignored);
    }
    std::shared_ptr<Socket> socket_;
    asio::steady_timer timer_;
    Cut& cut_;
};

std::uint16_t random_id() {
    const std::string bytes = random_bytes(2);
    return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[0]) << 8 |
                                      static_cast<unsigned char>(bytes[1]));
}

template <class Protocol>
typename Protocol::endpoint endpoint_of(DnsEndpoint server) {
    return {asio::ip::address_v4(server.address.value), server.port};
}

// An error of a socket; closed by us means that the time was over.
std::unexpected<Error> failed(DnsEndpoint server, const error_code& ec) {
    const std::string address = net::to_string(server.address);
    if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor)
        return fail(ErrorCode::deadline_exceeded, fmt::format("the dns server {} did not answer", address));
    return fail(ErrorCode::unavailable, fmt::format("the dns server {}: {}", address, ec.message()));
}

// What cannot be understood is a failure of the server.
Result<DnsAnswer> understood(DnsEndpoint server, Result<DnsAnswer> answer) {
    if (answer) return answer;
    return fail(ErrorCode::unavailable,
                fmt::format("the dns server {}: {}", net::to_string(server.address), answer.error().message));
}

}  // namespace

awaitable<Result<DnsAnswer>> ask_over_udp(DnsEndpoint server, const DnsQuestion& question, bool with_edns,
                                          Time until, Cut& cut) {
    const auto executor = co_await asio::this_coro::executor;
    LimitedSocket<udp::socket> socket(executor, until, cut);
    error_code ec;
    if (cut.done()) co_return failed(server, asio::error::operation_aborted);
    if (socket->open(udp::v4(), ec); ec) co_return failed(server, ec);
    // The kernel takes a random port when a socket without one is connected.
    if (socket->connect(endpoint_of<udp>(server), ec); ec) co_return failed(server, ec);

    const std::uint16_t id = random_id();
    const std::string query = make_query(id, question, with_edns);
    if (auto [error, sent] = co_await socket->async_send(asio::buffer(query), kErrorTuple); error)
        co_return failed(server, error);
    std::array<char, 4096> room;
    for (int strangers = 0; strangers < kMaxStrangers; ++strangers) {
        auto [error, size] = co_await socket->async_receive(asio::buffer(room), kErrorTuple);
        if (error) co_return failed(server, error);
        auto answer = parse_answer({room.data(), size}, id, question);
        if (!answer && answer.error().code == ErrorCode::aborted) continue;
        co_return understood(server, std::move(answer));
    }
    co_return DnsAnswer{.truncated = true};
}

awaitable<Result<DnsAnswer>> ask_over_tcp(DnsEndpoint server, const DnsQuestion& question, Time until,
                                          Cut& cut) {
    const auto executor = co_await asio::this_coro::executor;
    LimitedSocket<tcp::socket> socket(executor, until, cut);
    if (cut.done()) co_return failed(server, asio::error::operation_aborted);
    if (auto [error] = co_await socket->async_connect(endpoint_of<tcp>(server), kErrorTuple); error)
        co_return failed(server, error);

    const std::uint16_t id = random_id();
    const std::string query = make_query(id, question, false);
    std::string framed;
    wire::put_u16(framed, static_cast<std::uint16_t>(query.size()));
    framed += query;
    if (auto [error, sent] = co_await asio::async_write(*socket, asio::buffer(framed), kErrorTuple); error)
        co_return failed(server, error);
    std::string head(2, '\0');
    if (auto [error, size] = co_await asio::async_read(*socket, asio::buffer(head), kErrorTuple); error)
        co_return failed(server, error);
    std::string message(*wire::Reader(head).u16(), '\0');
    if (auto [error, size] = co_await asio::async_read(*socket, asio::buffer(message), kErrorTuple); error)
        co_return failed(server, error);
    co_return understood(server, parse_answer(message, id, question));
}

}  // namespace gb::egress
