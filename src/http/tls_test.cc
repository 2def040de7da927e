// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <boost/asio/read.hpp>
#include <fcntl.h>

#include "base/error_tuple.h"
#include "base/subprocess.h"
#include "http/https_testing.h"

namespace gb::http {
namespace {

using testing::HttpsTest;
using testing::make_certificate;
using testing::PemPair;

awaitable<void> echo(Exchange& exchange) {
    auto body = co_await exchange.body.read_all(64 << 20);
    if (!body) co_return;
    co_await exchange.response.send(
        200, {{"X-Path", exchange.target.path}, {"X-Tls", exchange.tls ? "yes" : "no"}}, *body);
}

class TlsFilesTest : public HttpsTest {
  protected:
    std::string refusal() {
        auto loaded = ServerTls::load(files_);
        EXPECT_FALSE(loaded);
        return loaded ? "" : loaded.error().message;
    }
};

TEST_F(TlsFilesTest, WhatCannotBeUsedIsNamed) {
    const PemPair good = make_certificate("good"), other = make_certificate("other");
    const PemPair locked = make_certificate("locked", "passphrase");
    install({good.certificate, other.key});
    EXPECT_NE(refusal().find("is not the key of the first certificate"), std::string::npos);
    install({"no certificate", good.key});
    EXPECT_NE(refusal().find("chain.pem: holds no certificate"), std::string::npos);
    install({good.certificate, "no key: s3cret"});
    EXPECT_NE(refusal().find("key.pem: holds no private key"), std::string::npos);
    EXPECT_EQ(refusal().find("s3cret"), std::string::npos);
    install({locked.certificate, locked.key});
    EXPECT_NE(refusal().find("passphrase"), std::string::npos);
    install({good.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n", good.key});
    EXPECT_NE(refusal().find("damaged"), std::string::npos);
    install({good.certificate + other.certificate, good.key});  // a chain
    EXPECT_TRUE(ServerTls::load(files_));
    std::filesystem::remove(files_.private_key);
    EXPECT_NE(refusal().find("key.pem"), std::string::npos);
    std::filesystem::remove(files_.certificate_chain);
    auto missing = ServerTls::load(files_);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_NE(missing.error().message.find("chain.pem"), std::string::npos);
}

TEST_F(TlsFilesTest, ABrokenReloadKeepsTheOldPair) {
    auto tls = ServerTls::load(files_);
    ASSERT_TRUE(tls);
    SSL_CTX* before = (*tls)->context();
    EXPECT_FALSE((*tls)->changed());
    install({make_certificate("a").certificate, make_certificate("b").key});
    EXPECT_TRUE((*tls)->changed());
    EXPECT_FALSE((*tls)->reload());
    EXPECT_EQ((*tls)->context(), before);
    EXPECT_FALSE((*tls)->changed()) << "a broken pair is tried once";
    install(make_certificate("c"));
    EXPECT_TRUE((*tls)->changed());
    EXPECT_TRUE((*tls)->reload());
    EXPECT_NE((*tls)->context(), before);
    std::filesystem::remove(files_.private_key);
    EXPECT_TRUE((*tls)->changed());
}

using TlsTest = HttpsTest;

TEST_F(TlsTest, Http1KeepsItsConnection) {
    start(echo);
    run([&]() -> awaitable<void> {
        auto [answer, ec] = co_await raw(
            "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
            "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: "
            "close\r\n\r\n2\r\nho\r\n0\r\n\r\n");
        EXPECT_NE(answer.find("X-Path: /a\r\nX-Tls: yes"), std::string::npos) << answer;
        EXPECT_NE(answer.find("X-Path: /b"), std::string::npos) << answer;
        EXPECT_TRUE(answer.ends_with("ho"));
        EXPECT_EQ(ec, asio::error::eof) << "no proper end of TLS";
    });
}

TEST_F(TlsTest, ALargeBodyAndAFilePass) {
    const std::string file(5'000'000, 'f');
    ASSERT_TRUE(write_file_atomic(dir_ / "file", file));
    start([&](Exchange& exchange) -> awaitable<void> {
        std::size_t got = 0;
        for (;;) {
            auto piece = co_await exchange.body.next();
            EXPECT_TRUE(piece);
            if (!piece || piece->empty()) break;
            got += piece->size();
        }
        co_await exchange.response.start(200, {{"X-Got", std::to_string(got)}}, file.size() + 4);
        co_await exchange.response.write("ab");
        auto opened = open_file(dir_ / "file", O_RDONLY);
        EXPECT_TRUE(co_await exchange.response.write_file(opened->get(), file.size()));
        co_await exchange.response.write("yz");
        co_await exchange.response.finish();
    });
    run([&]() -> awaitable<void> {
        const std::string body(64 << 20, 'u');
        auto [answer, ec] =
            co_await raw("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n\r\n" + body);
        EXPECT_NE(answer.find("X-Got: " + std::to_string(body.size())), std::string::npos);
        EXPECT_TRUE(answer.ends_with("\r\n\r\nab" + file + "yz"));
    });
}

TEST_F(TlsTest, SmallAndLargePiecesOfAStreamKeepTheirOrder) {
    std::string expected;
    start([&](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        for (std::size_t size : {1, 16384, 3, 16383, 16382, 40000, 0, 16385, 7}) {
            const std::string piece(size, static_cast<char>('a' + size % 26));
            expected += piece;
            co_await exchange.response.write(piece);
        }
        co_await exchange.response.finish();
    });
    run([&]() -> awaitable<void> {
        auto [answer, ec] = co_await raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        std::string_view rest = std::string_view(answer).substr(answer.find("\r\n\r\n") + 4);
        std::string body;
        for (;;) {
            const std::size_t size = std::stoul(std::string(rest.substr(0, 8)), nullptr, 16);
            rest.remove_prefix(rest.find("\r\n") + 2);
            body.append(rest.substr(0, size));
            rest.remove_prefix(size + 2);
            if (size == 0) break;
        }
        EXPECT_EQ(body, expected);
    });
}

TEST_F(TlsTest, ACutAnswerHasNoProperEnd) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.write("half");
    });
    run([&]() -> awaitable<void> {
        auto [answer, ec] = co_await raw("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
        EXPECT_TRUE(answer.ends_with("half"));
        EXPECT_NE(ec, asio::error::eof);
    });
}

TEST_F(TlsTest, AnUpgradeGivesAStreamWithTwoDirections) {
    start([](Exchange& exchange) -> awaitable<void> {
        std::string early;
        auto stream =
            co_await exchange.response.upgrade({101, {{"Upgrade", "x"}, {"Connection", "Upgrade"}}}, early);
        EXPECT_TRUE(stream);
        co_await (*stream)->write(asio::buffer(early));
        std::array<char, 100> room;
        auto [ec, n] = co_await (*stream)->read_some(asio::buffer(room));
        co_await (*stream)->write(asio::buffer(room, n));
        co_await (*stream)->shutdown_send();
        // The other direction is still open.
        auto [late_ec, late] = co_await (*stream)->read_some(asio::buffer(room));
        EXPECT_EQ(std::string_view(room.data(), late), "late");
        auto [end, none] = co_await (*stream)->read_some(asio::buffer(room));
        EXPECT_EQ(end, asio::error::eof);
    });
    run([&]() -> awaitable<void> {
        auto client = co_await connect();
        auto send = [&](std::string text) -> awaitable<void> {
            co_await asio::async_write(*client, asio::buffer(text), asio::use_awaitable);
        };
        auto receive = [&](std::size_t size) -> awaitable<std::string> {
            std::string got(size, '\0');
            co_await asio::async_read(*client, asio::buffer(got), asio::use_awaitable);
            co_return got;
        };
        co_await send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly");
        const std::string head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
        EXPECT_EQ(co_await receive(head.size() + 5), head + "early");
        co_await send("frame");
        EXPECT_EQ(co_await receive(5), "frame");
        char more = 0;
        auto [ec, n] = co_await client->async_read_some(asio::buffer(&more, 1), kErrorTuple);
        EXPECT_EQ(ec, asio::error::eof);
        co_await send("late");
        co_await client->async_shutdown(kErrorTuple);
        co_await until([&] { return server_->connections() == 0; });
    });
}

TEST_F(TlsTest, StopCutsAnUpgradedStreamToo) {
    bool ended = false;
    start([&](Exchange& exchange) -> awaitable<void> {
        std::string early;
        auto stream = co_await exchange.response.upgrade({101, {}}, early);
        char c = 0;
        co_await (*stream)->read_some(asio::buffer(&c, 1));
        ended = true;
    });
    run([&]() -> awaitable<void> {
        auto client = co_await connect();
        const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        co_await asio::async_write(*client, asio::buffer(request), asio::use_awaitable);
        char c = 0;
        co_await client->async_read_some(asio::buffer(&c, 1), kErrorTuple);
        server_->stop();
        co_await until([&] { return ended; });
    });
}

TEST_F(TlsTest, PeerClosedCompletesWhenTheClientGoesAway) {
    bool noticed = false;
    start([&](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.peer_closed();
        noticed = true;
    });
    run([&]() -> awaitable<void> {
        for (const bool politely : {true, false}) {
            noticed = false;
            auto client = co_await connect();
            // What belongs to the next request is no end.
            const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP";
            co_await asio::async_write(*client, asio::buffer(request), asio::use_awaitable);
            char c = 0;
            co_await client->async_read_some(asio::buffer(&c, 1), kErrorTuple);
            EXPECT_FALSE(noticed);
            if (politely) co_await client->async_shutdown(kErrorTuple);  // waits for the server's end too
            client->next_layer().close();
            co_await until([&] { return noticed; });
        }
    });
}

TEST_F(TlsTest, NewConnectionsGetTheNewCertificate) {
    start(echo, {.certificate_check = std::chrono::seconds(1)});
    run([&]() -> awaitable<void> {
        auto old = co_await connect();
        EXPECT_EQ(server_name(*old), "first");
        install(make_certificate("second"));
        std::string name;
        asio::steady_timer pause(io_);
        while (name != "second") {
            name = server_name(*co_await connect());
            pause.expires_after(std::chrono::milliseconds(50));
            co_await pause.async_wait(asio::use_awaitable);
        }
        install({make_certificate("third").certificate, make_certificate("fourth").key});
        co_await until([&] { return !tls_->changed(); });  // it has been looked at
        EXPECT_EQ(server_name(*co_await connect()), "second");
        const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        co_await asio::async_write(*old, asio::buffer(request), asio::use_awaitable);
        char c = 0;
        auto [ec, n] = co_await old->async_read_some(asio::buffer(&c, 1), kErrorTuple);
        EXPECT_FALSE(ec) << "the old connection was cut";
    });
}

TEST_F(TlsTest, WhatIsNoHandshakeEndsAndDisturbsNobody) {
    start(echo, {.handshake_timeout = std::chrono::seconds(1)});
    run([&]() -> awaitable<void> {
        tcp::socket silent(io_), half(io_), garbage(io_), http(io_);
        for (tcp::socket* socket : {&silent, &half, &garbage, &http})
            co_await socket->async_connect(endpoint_, asio::use_awaitable);
        const std::string noise(500, '\x99'), hello = "\x16\x03\x01\x02\x00\x01",
                                              plain = "GET / HTTP/1.1\r\n\r\n";
        co_await asio::async_write(garbage, asio::buffer(noise), asio::use_awaitable);
        co_await asio::async_write(half, asio::buffer(hello), asio::use_awaitable);
        co_await asio::async_write(http, asio::buffer(plain), asio::use_awaitable);
        auto [good, ec] = co_await raw("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        EXPECT_TRUE(good.starts_with("HTTP/1.1 200")) << good;
        std::map<tcp::socket*, std::string> answers;
        for (tcp::socket* socket : {&silent, &half, &garbage, &http})
            co_await asio::async_read(*socket, asio::dynamic_buffer(answers[socket]), kErrorTuple);
        EXPECT_EQ(answers[&silent], "");
        EXPECT_EQ(answers[&half], "");
        EXPECT_TRUE(answers[&http].starts_with("HTTP/1.1 400")) << answers[&http];
        EXPECT_TRUE(answers[&http].ends_with("}"));
        co_await until([&] { return server_->connections() == 0; });
    });
}

TEST_F(TlsTest, OldVersionsAndUnknownProtocolsAreRefused) {
    start(echo);
    run([&]() -> awaitable<void> {
        for (const bool old : {true, false}) {
            auto client = make_client(old ? "" : "\x04spdy");
            if (old) {
                SSL_set_security_level(client->native_handle(), 0);
                SSL_set_min_proto_version(client->native_handle(), TLS1_VERSION);
                SSL_set_max_proto_version(client->native_handle(), TLS1_1_VERSION);
            }
            co_await client->next_layer().async_connect(endpoint_, asio::use_awaitable);
            auto [ec] = co_await client->async_handshake(TlsSocket::client, kErrorTuple);
            EXPECT_TRUE(ec) << old;
        }
        auto client = make_client("");  // no ALPN at all: HTTP/1.1
        SSL_set_max_proto_version(client->native_handle(), TLS1_2_VERSION);
        co_await client->next_layer().async_connect(endpoint_, asio::use_awaitable);
        co_await client->async_handshake(TlsSocket::client, asio::use_awaitable);
        const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        co_await asio::async_write(*client, asio::buffer(request), asio::use_awaitable);
        std::string got(12, '\0');
        co_await asio::async_read(*client, asio::buffer(got), asio::use_awaitable);
        EXPECT_EQ(got, "HTTP/1.1 200");
    });
}

TEST_F(TlsTest, MoreConnectionsThanAllowedAreClosed) {
    start(echo, {.max_connections = 2});
    run([&]() -> awaitable<void> {
        tcp::socket silent(io_);
        co_await silent.async_connect(endpoint_, asio::use_awaitable);  // its handshake counts
        auto second = co_await connect();
        auto third = make_client("");
        co_await third->next_layer().async_connect(endpoint_, asio::use_awaitable);
        auto [ec] = co_await third->async_handshake(TlsSocket::client, kErrorTuple);
        EXPECT_TRUE(ec);
        EXPECT_EQ(server_->connections(), 2U);
    });
}

TEST_F(TlsTest, CurlSpeaksBothProtocols) {
    start(echo);
    Result<RunOutput> one = fail(ErrorCode::unknown, ""), two = one;
    const std::string url = "https://127.0.0.1:" + std::to_string(endpoint_.port()) + "/c";
    std::thread clients([&] {
        const std::vector<std::string> common{"curl", "-sSk", "--max-time", "20",
                                              "-d",   "body", "-w",         " %{http_version}"};
        auto with = [&](std::vector<std::string> more) {
            std::vector<std::string> argv = common;
            argv.insert(argv.end(), more.begin(), more.end());
            argv.push_back(url);
            return gb::run(argv);
        };
        one = with({"--http1.1"});
        two = with({"--http2"});
        asio::post(io_, [this] { server_->stop(); });
    });
    io_.run_for(std::chrono::seconds(50));
    clients.join();
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(two) << two.error().message;
    EXPECT_EQ(one->out, "body 1.1") << one->err;
    EXPECT_EQ(two->out, "body 2") << two->err;
}

}  // namespace
}  // namespace gb::http
