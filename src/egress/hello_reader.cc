// SPDX-License-Identifier: Apache-2.0
#include "egress/hello_reader.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error_tuple.h"

namespace gb::egress {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// How many bytes must be there for the socket to be readable: what was seen already is nothing new.
void set_low_water(tcp::socket& socket, int bytes) {
    (void)::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

}  // namespace

asio::awaitable<ClientHello> peek_hello(std::shared_ptr<tcp::socket> socket,
                                        std::chrono::milliseconds limit) {
    asio::steady_timer timer(socket->get_executor(), limit);
    auto over = std::make_shared<bool>(false);
    timer.async_wait([socket, over](const boost::system::error_code& ec) {
        boost::system::error_code ignored;
        if (!ec && !*over) socket->cancel(ignored);
    });
    ClientHello hello;
    std::string bytes;
    std::size_t seen = 0;
    while (hello.state == ClientHello::State::needs_more) {
        auto [ec] = co_await socket->async_wait(tcp::socket::wait_read, kErrorTuple);
        if (ec) break;
        bytes.resize(std::clamp<std::size_t>(seen * 2, 4096, kLargestHello + 1));
        const ssize_t n =
            ::recv(socket->native_handle(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0 || static_cast<std::size_t>(n) == seen) break;  // readable with nothing new: its end
        seen = static_cast<std::size_t>(n);
        hello = read_client_hello(std::string_view(bytes).substr(0, seen));
        set_low_water(*socket, static_cast<int>(seen) + 1);
    }
    *over = true;
    timer.cancel();
    set_low_water(*socket, 1);
    co_return hello;
}

}  // namespace gb::egress
