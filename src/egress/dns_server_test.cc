// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/error_tuple.h"
#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;
using std::chrono::milliseconds;

UniqueFd bound_socket(int type, std::uint16_t& port) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&where);
    socklen_t size = sizeof where;
    if (::bind(fd.get(), address, size) != 0 || ::getsockname(fd.get(), address, &size) != 0) std::abort();
    if (type == SOCK_STREAM && ::listen(fd.get(), 64) != 0) std::abort();
    port = ntohs(where.sin_port);
    return fd;
}

// A server whose answerer answers with 1.2.3.4, or, for names that begin with "slow", when the test lets it.
class DnsServerTest : public ::testing::Test {
  protected:
    void start(DnsServerOptions options = {}) {
        UniqueFd udp_fd = bound_socket(SOCK_DGRAM, udp_port_), tcp_fd = bound_socket(SOCK_STREAM, tcp_port_);
        auto server = DnsServer::start(
            io_.get_executor(), std::move(udp_fd), std::move(tcp_fd),
            [this](DnsQuery query) -> awaitable<DnsReply> { return answer_for(std::move(query)); }, options);
        ASSERT_TRUE(server) << server.error().message;
        server_ = *std::move(server);
    }
    awaitable<DnsReply> answer_for(DnsQuery query) {
        if (query.question.name.starts_with("slow")) {
            ++slow_;
            while (!go_) {
                asio::steady_timer pause(io_, milliseconds(1));
                co_await pause.async_wait(kErrorTuple);
            }
        }
        DnsRecords records;
        for (std::uint32_t i = 0; i < addresses_; ++i) records.addresses.push_back({{0x01020304 + i}, 60});
        co_return answer(std::move(records));
    }
    void TearDown() override {
        go_ = true;
        server_.reset();
        io_.restart();
        io_.run();  // ends only when nothing is under way any more
    }
    template <class Condition>
    void until(Condition condition) {
        io_.restart();
        while (!condition() && io_.run_one_for(std::chrono::seconds(30)) != 0) {
        }
        ASSERT_TRUE(condition());
    }

    udp::socket udp_client() {
        udp::socket socket(io_, udp::endpoint(asio::ip::address_v4::loopback(), 0));
        socket.connect({asio::ip::address_v4::loopback(), udp_port_});
        return socket;
    }
    std::string receive(udp::socket& socket) {
        return run(io_, [](udp::socket& s) -> awaitable<std::string> {
            std::string room(65535, '\0');
            auto [ec, size] = co_await s.async_receive(asio::buffer(room), kErrorTuple);
            co_return ec ? "error" : room.substr(0, size);
        }(socket));
    }
    tcp::socket tcp_client() {
        tcp::socket socket(io_);
        socket.connect({asio::ip::address_v4::loopback(), tcp_port_});
        return socket;
    }
    static void send(tcp::socket& socket, std::string_view message) {
        std::string framed;
        wire::put_u16(framed, static_cast<std::uint16_t>(message.size()));
        asio::write(socket, asio::buffer(framed + std::string(message)));
    }
    // The next message, "closed" at the end of the connection.
    std::string receive(tcp::socket& socket) {
        return run(io_, [](tcp::socket& s) -> awaitable<std::string> {
            std::string head(2, '\0');
            auto [ec, n] = co_await asio::async_read(s, asio::buffer(head), kErrorTuple);
            if (ec) co_return "closed";
            std::string message(*wire::Reader(head).u16(), '\0');
            auto [ec2, n2] = co_await asio::async_read(s, asio::buffer(message), kErrorTuple);
            co_return ec2 ? "closed" : message;
        }(socket));
    }
    static std::string query(const std::string& name, std::uint16_t id = 7) {
        return make_query(id, {name, DnsType::a}, false);
    }

    asio::io_context io_;
    std::uint16_t udp_port_ = 0, tcp_port_ = 0;
    int slow_ = 0;
    bool go_ = false;
    std::uint32_t addresses_ = 1;
    std::unique_ptr<DnsServer> server_;
};

const std::string kAnswer = "NOERROR qr rd ra; a. IN A; a. 60 IN A 1.2.3.4";

TEST_F(DnsServerTest, AnswersOverUdpFromTheSocketThatWasAsked) {
    start();
    auto client = udp_client();  // connected: takes messages of that address alone
    client.send(asio::buffer(query("a")));
    EXPECT_EQ(describe(receive(client)), kAnswer);
    EXPECT_EQ(server_->counters().queries, 1U);
}

TEST_F(DnsServerTest, AnswersOverTcpOneAfterAnother) {
    start();
    auto client = tcp_client();
    send(client, query("a"));
    EXPECT_EQ(describe(receive(client)), kAnswer);
    send(client, query("slow", 1));
    send(client, query("a", 2));
    until([&] { return slow_ == 1; });
    go_ = true;
    EXPECT_EQ(wire::Reader(receive(client)).header()->id, 1);
    EXPECT_EQ(wire::Reader(receive(client)).header()->id, 2);
    client.shutdown(tcp::socket::shutdown_send);
    EXPECT_EQ(receive(client), "closed");
}

TEST_F(DnsServerTest, AQueryMayComeInPiecesAndTheClientMayEndItsSideFirst) {
    start();
    auto client = tcp_client();
    std::string framed;
    wire::put_u16(framed, static_cast<std::uint16_t>(query("a").size()));
    framed += query("a");
    for (char c : framed) {
        asio::write(client, asio::buffer(&c, 1));
        io_.restart();
        io_.poll();
    }
    client.shutdown(tcp::socket::shutdown_send);
    EXPECT_EQ(describe(receive(client)), kAnswer);
    EXPECT_EQ(receive(client), "closed");
}

TEST_F(DnsServerTest, LargeAnswersAreCutOverUdpOnly) {
    addresses_ = 60;
    start();
    auto udp_side = udp_client();
    udp_side.send(asio::buffer(query("a")));
    const std::string cut = receive(udp_side);
    EXPECT_LE(cut.size(), 512U);
    EXPECT_TRUE(describe(cut).starts_with("NOERROR qr tc rd ra"));
    auto tcp_side = tcp_client();
    send(tcp_side, query("a"));
    const std::string whole = receive(tcp_side);
    EXPECT_TRUE(describe(whole).starts_with("NOERROR qr rd ra"));
    EXPECT_EQ(wire::Reader(whole).header()->answers, 60);
}

TEST_F(DnsServerTest, EveryByteIsSurvived) {
    start();
    auto client = udp_client();
    auto deliver = [&](const std::string& bytes) {  // taken at once, or the kernel might drop some
        ASSERT_EQ(::send(client.native_handle(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
        io_.restart();
        io_.poll();
    };
    std::string bytes;
    for (int i = 0; i < 200; ++i) {
        bytes.push_back(static_cast<char>(i * 37));
        deliver(bytes);
    }
    deliver("");
    deliver(std::string(60'000, 'x'));
    deliver(query("a b"));
    deliver(query("a", 99));
    std::string got;
    do got = receive(client);
    while (got.size() < 12 || wire::Reader(got).header()->id != 99);
    EXPECT_EQ(describe(got), kAnswer);
    EXPECT_EQ(server_->counters().queries, 1U);
    EXPECT_EQ(server_->counters().unusable, 203U);

    auto odd = tcp_client();
    send(odd, query("a b"));  // gets its answer, and the connection goes on
    EXPECT_EQ(describe(receive(odd)), "NXDOMAIN qr rd ra; a\\032b. IN A");
    send(odd, "rubbish");
    EXPECT_EQ(receive(odd), "closed");
    auto empty = tcp_client();
    send(empty, "");
    EXPECT_EQ(receive(empty), "closed");
    auto huge = tcp_client();
    asio::write(huge, asio::buffer("\xff\xff", 2));
    EXPECT_EQ(receive(huge), "closed");
    auto reset = tcp_client();
    send(reset, query("slow"));
    until([&] { return slow_ == 1; });
    reset.set_option(asio::socket_base::linger(true, 0));
    reset.close();
    go_ = true;
    auto last = tcp_client();
    send(last, query("a"));
    EXPECT_EQ(describe(receive(last)), kAnswer);
}

TEST_F(DnsServerTest, TooManyUdpQueriesAreDropped) {
    start({.max_udp_queries = 4});
    auto client = udp_client();
    for (int i = 0; i < 6; ++i) client.send(asio::buffer(query("slow" + std::to_string(i))));
    until([&] { return server_->counters().dropped == 2; });
    EXPECT_EQ(slow_, 4);
    go_ = true;
    for (int i = 0; i < 4; ++i) EXPECT_NE(receive(client), "error");
    client.send(asio::buffer(query("a")));
    EXPECT_EQ(describe(receive(client)), kAnswer);
}

TEST_F(DnsServerTest, TheOldestIdleConnectionGivesWay) {
    start({.max_connections = 3});
    auto first = tcp_client(), second = tcp_client(), third = tcp_client();
    until([&] { return server_->counters().connections == 3; });
    send(first, query("slow"));  // not idle while it waits
    until([&] { return slow_ == 1; });
    send(second, query("a"));  // idle again, but later than the third
    EXPECT_EQ(describe(receive(second)), kAnswer);
    auto fourth = tcp_client();
    EXPECT_EQ(receive(third), "closed");
    send(fourth, query("a"));
    EXPECT_EQ(describe(receive(fourth)), kAnswer);
    send(second, query("slow"));
    send(fourth, query("slow"));
    until([&] { return slow_ == 3; });
    auto fifth = tcp_client();  // nobody is idle
    EXPECT_EQ(receive(fifth), "closed");
    EXPECT_EQ(server_->counters().closed_for_room, 2U);
    go_ = true;
    for (auto* client : {&first, &second, &fourth}) EXPECT_NE(receive(*client), "closed");
}

TEST_F(DnsServerTest, IdleConnectionsEndAndBusyOnesDoNot) {
    start({.idle = milliseconds(50)});
    auto nothing = tcp_client(), half = tcp_client(), busy = tcp_client();
    send(busy, query("slow"));
    asio::write(half, asio::buffer("\0\x20half", 6));
    EXPECT_EQ(receive(nothing), "closed");
    EXPECT_EQ(receive(half), "closed");
    go_ = true;
    EXPECT_NE(receive(busy), "closed");
    EXPECT_EQ(receive(busy), "closed");
}

TEST_F(DnsServerTest, AClientThatTakesNoAnswersIsLetGo) {
    addresses_ = 4000;
    start({.idle = milliseconds(50)});
    auto client = tcp_client();
    asio::steady_timer poll(io_);
    // 64 KB an answer until neither side has room for more; then the connection ends by the time limit.
    client.non_blocking(true);
    std::string framed;
    wire::put_u16(framed, static_cast<std::uint16_t>(query("a").size()));
    framed += query("a");
    std::size_t offset = 0;
    boost::system::error_code ec;
    until([&] {
        do offset = (offset + client.write_some(asio::buffer(framed) + offset, ec)) % framed.size();
        while (!ec);
        poll.expires_after(milliseconds(1));
        poll.async_wait([](boost::system::error_code) {});
        return ec != asio::error::would_block;
    });
    EXPECT_GT(server_->counters().queries, 0U);
}

TEST_F(DnsServerTest, MoreThanItsShareWaits) {
    start({.max_per_second = 3});
    auto client = udp_client();
    for (std::uint16_t id = 0; id < 5; ++id) client.send(asio::buffer(query("a", id)));
    for (std::uint16_t id = 0; id < 5; ++id) EXPECT_EQ(wire::Reader(receive(client)).header()->id, id);
}

TEST_F(DnsServerTest, StopEndsAll) {
    start();
    auto idle = tcp_client(), busy = tcp_client();
    auto client = udp_client();
    send(busy, query("slow"));
    client.send(asio::buffer(query("slow")));
    until([&] { return slow_ == 2 && server_->counters().connections == 2; });
    server_->stop();
    EXPECT_EQ(receive(idle), "closed");
    EXPECT_EQ(receive(busy), "closed");
    tcp::socket late(io_);
    boost::system::error_code ec;
    late.connect({asio::ip::address_v4::loopback(), tcp_port_}, ec);
    EXPECT_TRUE(ec);
    server_.reset();  // while answers are under way; TearDown sees that they end
}

TEST_F(DnsServerTest, WhatIsNoSocketIsRefused) {
    std::uint16_t port = 0;
    const auto answerer = [](DnsQuery) -> awaitable<DnsReply> { co_return nxdomain(); };
    EXPECT_FALSE(DnsServer::start(io_.get_executor(), UniqueFd(), bound_socket(SOCK_STREAM, port), answerer));
    EXPECT_FALSE(DnsServer::start(io_.get_executor(), bound_socket(SOCK_DGRAM, port), UniqueFd(), answerer));
}

}  // namespace
}  // namespace gb::egress
