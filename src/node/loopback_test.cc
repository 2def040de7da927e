// SPDX-License-Identifier: Apache-2.0
#include "node/loopback.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/error_tuple.h"

namespace gb {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// What ask_loopback() makes of an agent that answers with these pieces and closes, and what is left to read.
struct Outcome {
    boost::system::error_code ec;
    std::string rest;
};
Outcome ask(std::vector<std::string> pieces) {
    asio::io_context io;
    tcp::acceptor listener(io, {asio::ip::address_v4::loopback(), 0});
    Outcome out;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            tcp::socket peer = co_await listener.async_accept(asio::use_awaitable);
            std::string request;
            co_await asio::async_read_until(peer, asio::dynamic_buffer(request), "\r\n\r\n", asio::use_awaitable);
            EXPECT_TRUE(request.starts_with("GET /loopback?port=8080 HTTP/1.1\r\n")) << request;
            for (const std::string& piece : pieces)
                co_await asio::async_write(peer, asio::buffer(piece), asio::use_awaitable);
        },
        [](const std::exception_ptr& failure) {
            if (failure) std::rethrow_exception(failure);
        });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            tcp::socket socket(io);
            co_await socket.async_connect(listener.local_endpoint(), asio::use_awaitable);
            socket.non_blocking(true);
            out.ec = co_await ask_loopback(socket, 8080);
            co_await asio::async_read(socket, asio::dynamic_buffer(out.rest), kErrorTuple);
        },
        [](const std::exception_ptr& failure) {
            if (failure) std::rethrow_exception(failure);
        });
    io.run_for(std::chrono::minutes(10));
    return out;
}

TEST(AskLoopback, LeavesTheServicesBytes) {
    const Outcome out = ask({"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n", "\r\nSSH-2.0", "-x"});
    EXPECT_FALSE(out.ec) << out.ec.message();
    EXPECT_EQ(out.rest, "SSH-2.0-x");
}

TEST(AskLoopback, AClosedPortIsARefusedConnection) {
    EXPECT_EQ(ask({"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"}).ec, asio::error::connection_refused);
}

TEST(AskLoopback, AnythingElseIsAnError) {
    EXPECT_TRUE(ask({"HTTP/1.1 200 OK\r\n\r\n"}).ec);
    EXPECT_TRUE(ask({"nonsense\r\n\r\n"}).ec);
    EXPECT_TRUE(ask({std::string(10'000, 'x')}).ec);
    EXPECT_TRUE(ask({"HTTP/1.1 101"}).ec);
    EXPECT_TRUE(ask({}).ec);
}

}  // namespace
}  // namespace gb
