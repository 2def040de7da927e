// SPDX-License-Identifier: Apache-2.0
// Against a proxy of the test's own that says what it is told to, byte by byte.
#include "egress/socks5.h"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace gb::egress {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::string_literals;

struct Turn {
    std::string heard, said;
};

struct Outcome {
    Status status;
    bool heard_all = false;
};

Outcome converse(std::vector<Turn> turns, std::string username, std::string password, SocksTarget target,
                 std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    asio::io_context io;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    Outcome out;
    std::thread proxy([&] {
        asio::io_context own;
        tcp::socket socket = acceptor.accept(own);
        boost::system::error_code ec;
        for (const Turn& turn : turns) {
            std::string heard(turn.heard.size(), '\0');
            asio::read(socket, asio::buffer(heard), ec);
            if (ec || heard != turn.heard) return;
            for (char c : turn.said) asio::write(socket, asio::buffer(&c, 1), ec);
        }
        out.heard_all = true;
        char byte = 0;
        asio::read(socket, asio::buffer(&byte, 1), ec);  // until the other side closes
    });
    auto socket = std::make_shared<tcp::socket>(io);
    socket->connect(acceptor.local_endpoint());
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            out.status = co_await socks5_connect(socket, username, password, target, 443, limit);
            boost::system::error_code ignored;
            socket->close(ignored);
        },
        [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    io.run();
    proxy.join();
    return out;
}

TEST(Socks5, AsksForNamesAndAddresses) {
    const std::string bound = "\x05\0\0\x01\1\2\3\4\0\5"s;
    Outcome named = converse({{"\5\1\0"s, "\5\0"s}, {"\5\1\0\3\6ok.com\x01\xbb"s, bound}}, "", "", "ok.com"s);
    EXPECT_TRUE(named.status) << named.status.error().message;
    EXPECT_TRUE(named.heard_all);
    Outcome address =
        converse({{"\5\1\0"s, "\5\0"s}, {"\5\1\0\1\x08\x08\x04\x04\x01\xbb"s, "\5\0\0\3\3abc\0\5"s}}, "", "",
                 net::Ipv4{0x08080404});
    EXPECT_TRUE(address.status) << address.status.error().message;
    Outcome login = converse({{"\5\1\2"s, "\5\2"s},
                              {"\1\2me\6secret"s, "\1\0"s},
                              {"\5\1\0\3\6ok.com\x01\xbb"s, "\5\0\0\4"s + std::string(18, 'x')}},
                             "me", "secret", "ok.com"s);
    EXPECT_TRUE(login.status) << login.status.error().message;
    EXPECT_TRUE(login.heard_all);
}

TEST(Socks5, RefusalsAreErrorsThatTellNothing) {
    struct Case {
        const char* what;
        std::vector<Turn> turns;
        ErrorCode code;
    };
    const Turn hello{"\5\1\2"s, "\5\2"s}, logged{"\1\2me\6secret"s, "\1\0"s};
    const Case kCases[] = {
        {"another protocol", {{"\5\1\2"s, "HTTP/1.1"s}}, ErrorCode::internal},
        {"no method", {{"\5\1\2"s, "\5\xff"s}}, ErrorCode::permission_denied},
        {"a method that we did not offer", {{"\5\1\2"s, "\5\1"s}}, ErrorCode::permission_denied},
        {"wrong password", {hello, {"\1\2me\6secret"s, "\1\1"s}}, ErrorCode::permission_denied},
        {"not allowed",
         {hello, logged, {"\5\1\0\3\6ok.com\x01\xbb"s, "\5\2\0\1"s}},
         ErrorCode::permission_denied},
        {"unreachable", {hello, logged, {"\5\1\0\3\6ok.com\x01\xbb"s, "\5\4\0\1"s}}, ErrorCode::unavailable},
        {"an address of no kind",
         {hello, logged, {"\5\1\0\3\6ok.com\x01\xbb"s, "\5\0\0\x09"s}},
         ErrorCode::internal},
        {"silence", {{"\5\1\2"s, ""}}, ErrorCode::deadline_exceeded},
    };
    for (const Case& c : kCases) {
        Outcome out = converse(c.turns, "me", "secret", "ok.com"s, std::chrono::milliseconds(300));
        ASSERT_FALSE(out.status) << c.what;
        EXPECT_EQ(out.status.error().code, c.code) << c.what << out.status.error().message;
        EXPECT_EQ(out.status.error().message.find("secret"), std::string::npos);
    }
    for (int code = 1; code < 256; ++code) EXPECT_FALSE(socks5_reply(static_cast<std::uint8_t>(code)));
}

}  // namespace
}  // namespace gb::egress
