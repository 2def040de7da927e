// SPDX-License-Identifier: Apache-2.0
// Bytes, ends and breaks through a tunnel, with real sockets.
#include "egress/tunnel.h"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace gb::egress {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

class TunnelTest : public testing::Test {
  protected:
    // What is outside of the tunnel, and the end of it that the tunnel has.
    std::pair<tcp::socket, std::shared_ptr<tcp::socket>> pair() {
        tcp::acceptor acceptor(outside_, {asio::ip::address_v4::loopback(), 0});
        auto inner = std::make_shared<tcp::socket>(io_);
        inner->connect(acceptor.local_endpoint());
        return {acceptor.accept(), std::move(inner)};
    }
    void SetUp() override {
        std::tie(guest_, inner_guest_) = pair();
        std::tie(server_, inner_server_) = pair();
    }
    void start(TunnelOptions options = {}) {
        asio::co_spawn(io_, tunnel(inner_guest_, inner_server_, counters_, options),
                       [this](const std::exception_ptr&) { ended_ = true; });
        thread_ = std::thread([this] { io_.run(); });
    }
    void TearDown() override {
        boost::system::error_code ignored;
        guest_.close(ignored);
        server_.close(ignored);
        if (thread_.joinable()) thread_.join();
        EXPECT_TRUE(ended_);
    }
    static std::string read(tcp::socket& socket, std::size_t size) {
        std::string out(size, '\0');
        boost::system::error_code ec;
        out.resize(asio::read(socket, asio::buffer(out), ec));
        return out;
    }
    static boost::system::error_code ended(tcp::socket& socket) {
        char byte = 0;
        boost::system::error_code ec;
        asio::read(socket, asio::buffer(&byte, 1), ec);
        return ec;
    }

    asio::io_context outside_, io_;
    tcp::socket guest_{outside_}, server_{outside_};
    std::shared_ptr<tcp::socket> inner_guest_, inner_server_;
    std::shared_ptr<ByteCounters> counters_ = std::make_shared<ByteCounters>();
    std::thread thread_;
    bool ended_ = false;
};

TEST_F(TunnelTest, HalfCloseIsPassedOnAndTheOtherDirectionGoesOn) {
    start();
    asio::write(guest_, asio::buffer("question", 8));
    guest_.shutdown(tcp::socket::shutdown_send);
    EXPECT_EQ(read(server_, 8), "question");
    EXPECT_EQ(ended(server_), asio::error::eof);
    asio::write(server_, asio::buffer("answer", 6));
    server_.close();
    EXPECT_EQ(read(guest_, 6), "answer");
    EXPECT_EQ(ended(guest_), asio::error::eof);
    thread_.join();
    EXPECT_EQ(counters_->up, 8U);
    EXPECT_EQ(counters_->down, 6U);
}

TEST_F(TunnelTest, ManyBytesArriveWhole) {
    start();
    const std::size_t size = std::size_t{64} << 20;
    std::string sent(size, '\0');
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 7 + (i >> 13));
    std::thread writer([&] {
        asio::write(server_, asio::buffer(sent));
        server_.shutdown(tcp::socket::shutdown_send);
    });
    EXPECT_TRUE(read(guest_, size + 1) == sent);
    writer.join();
    guest_.close();
    thread_.join();
    EXPECT_EQ(counters_->down, size);
}

TEST_F(TunnelTest, ABreakIsABreakOnBothSides) {
    start();
    asio::write(guest_, asio::buffer("x", 1));
    EXPECT_EQ(read(server_, 1), "x");
    reset(server_);
    EXPECT_EQ(ended(guest_), asio::error::connection_reset);
}

TEST_F(TunnelTest, CanBeCutFromOutside) {
    start();
    asio::write(guest_, asio::buffer("x", 1));
    EXPECT_EQ(read(server_, 1), "x");
    asio::post(io_, [this] {
        reset(*inner_guest_);
        reset(*inner_server_);
    });
    EXPECT_EQ(ended(guest_), asio::error::connection_reset);
    EXPECT_EQ(ended(server_), asio::error::connection_reset);
}

TEST_F(TunnelTest, HalfOpenAndSilentIsNotForEver) {
    start({.half_open = std::chrono::seconds(1)});
    guest_.shutdown(tcp::socket::shutdown_send);
    EXPECT_EQ(ended(server_), asio::error::eof);
    EXPECT_EQ(ended(guest_), asio::error::connection_reset) << "cut when nothing more came";
}

}  // namespace
}  // namespace gb::egress
