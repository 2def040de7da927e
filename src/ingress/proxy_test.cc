// SPDX-License-Identifier: Apache-2.0
#include "ingress/proxy_fixture.h"

#include <map>

#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"
#include "base/file_signature.h"

namespace gb::ingress {
namespace {

TEST_F(ProxyTest, PassesRequestsBothWaysAndKeepsTheConnection) {
    std::set<unsigned short> peers;
    serve([&](Exchange& e) -> awaitable<void> {
        peers.insert(e.peer.port());
        auto body = co_await e.body.read_all(1 << 20);
        EXPECT_FALSE(e.head.headers.has("X-API-Key"));
        EXPECT_TRUE(e.head.headers.has("X-Forwarded-For"));
        co_await e.response.send(201, {{"X-Seen", e.head.target}}, *body + "!");
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        for (int i = 0; i < 3; ++i) {
            auto h = head("POST", "/a?b=%20c", id);
            h.headers.add("X-API-Key", "secret");
            auto response = co_await connection.request(std::move(h), "hello");
            EXPECT_TRUE(response);
            EXPECT_EQ(response->head.status, 201);
            EXPECT_EQ(response->head.headers.get("X-Seen"), "/a?b=%20c");
            EXPECT_EQ(response->body, "hello!");
        }
        peers.clear();
        for (int i = 0; i < 3; ++i) {
            auto response = co_await connection.request(head("GET", "/a", id), "");
            EXPECT_TRUE(response);
        }
        EXPECT_EQ(peers.size(), 1U) << "the connection into the sandbox was not reused";
    });
}

// A service that answers one request on each connection, keeps it, and closes it when the next one arrives.
TEST_F(ProxyTest, WhatAServiceDidNotHearIsRepeatedOrNeverSentOnAConnectionThatMayBeStale) {
    http::tcp::acceptor acceptor(io_, {asio::ip::make_address("127.0.0.1"), 0});
    service_port_ = acceptor.local_endpoint().port();
    int unheard = 0;
    auto serve_one = [&](http::tcp::socket socket) -> awaitable<void> {
        std::string input;
        auto [ec, n] = co_await asio::async_read_until(socket, asio::dynamic_buffer(input), "\r\n\r\n",
                                                       kErrorTuple);
        if (ec) co_return;
        if (input.find("Content-Length: 1\r\n") != std::string::npos && input.size() == n)
            co_await asio::async_read(socket, asio::dynamic_buffer(input), asio::transfer_exactly(1),
                                      asio::use_awaitable);
        const std::string text = input.substr(0, input.find(' ')) + input.substr(n);
        co_await asio::async_write(
            socket,
            asio::buffer("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text),
            asio::use_awaitable);
        std::array<char, 1> more{};
        auto [again, got] =
            co_await socket.async_read_some(asio::buffer(more), kErrorTuple);
        if (!again) ++unheard;
    };
    asio::co_spawn(
        io_,
        [&]() -> awaitable<void> {
            for (;;) {
                auto [ec, socket] = co_await acceptor.async_accept(kErrorTuple);
                if (ec) co_return;
                asio::co_spawn(io_, serve_one(std::move(socket)), asio::detached);
            }
        },
        asio::detached);
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        auto connection = co_await client();
        for (int i = 0; i < 4; ++i)
            for (const auto& [method, body] : std::initializer_list<std::pair<const char*, const char*>>{
                     {"GET", ""}, {"PUT", "x"}, {"POST", "y"}, {"POST", ""}, {"DELETE", ""}}) {
                auto response = co_await connection.request(head(method, "/", id), body);
                EXPECT_TRUE(response);
                if (!response) co_return;
                EXPECT_EQ(response->head.status, 200) << method;
                EXPECT_EQ(response->body, std::string(method) + body);
            }
        EXPECT_GT(unheard, 0) << "no kept connection was tried";
    });
    acceptor.close();
}

TEST_F(ProxyTest, StreamsWithoutWaitingForTheEnd) {
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {});
        for (;;) {
            auto piece = co_await e.body.next();
            if (!piece || piece->empty()) break;
            co_await e.response.write("<" + std::string(*piece) + ">");
        }
        co_await e.response.finish();
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        co_await connection.start(head("POST", "/", id), std::nullopt);
        co_await connection.write("one");
        co_await connection.read_head();
        EXPECT_EQ(*(co_await connection.next()), "<one>");
        co_await connection.write("two");
        EXPECT_EQ(*(co_await connection.next()), "<two>");
        co_await connection.finish();
        EXPECT_EQ(*(co_await connection.next()), "");
    });
}

TEST_F(ProxyTest, UnknownSandboxAndClosedPortAre502WithTheirReasons) {
    run([&]() -> awaitable<void> {
        auto connection = co_await client();
        auto unknown = co_await connection.request(head("GET", "/health", "inone", 49983), "");
        EXPECT_EQ(unknown->head.status, 502);
        EXPECT_EQ(unknown->body, R"({"sandboxId":"inone","message":"The sandbox was not found","code":502})");
        std::string id = co_await sandbox();
        auto closed = co_await connection.request(head("GET", "/", id, 1), "");
        EXPECT_EQ(closed->head.status, 502);
        EXPECT_NE(closed->body.find("port is not open"), std::string::npos);
        auto browser = head("GET", "/", id, 1);
        browser.headers.add("User-Agent", "Mozilla/5.0");
        auto page = co_await connection.request(std::move(browser), "");
        EXPECT_TRUE(page->body.starts_with("<html"));
        EXPECT_TRUE(page->body.ends_with("</html>"));
        EXPECT_NE(page->body.find("no service running on port"), std::string::npos);
    });
}

TEST_F(ProxyTest, ControlRoutesOfTheAgentAreNotReachable) {
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        for (auto path : {"/init", "//init", "/%69nit", "/freeze", "/trust", "//trust", "/%74rust"}) {
            auto response = co_await connection.request(head("POST", path, id, kAgentPort), "{}");
            EXPECT_EQ(response->head.status, 404) << path;
        }
    });
}

TEST_F(ProxyTest, KillingTheSandboxCutsItsStreams) {
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {});
        co_await e.response.write("running");
        co_await e.response.peer_closed();
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        co_await connection.start(head("GET", "/", id), 0);
        co_await connection.read_head();
        co_await connection.next();
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
        EXPECT_FALSE(co_await connection.next()) << "the stream ended as if it were complete";
        auto second = co_await client();
        auto after = co_await second.request(head("GET", "/health", id, 49983), "");
        EXPECT_EQ(after->head.status, 502);
    });
}

TEST_F(ProxyTest, AClientThatGoesAwayIsNoticedBehindTheProxy) {
    bool noticed = false;
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {});
        co_await e.response.write("x");
        co_await e.response.peer_closed();
        noticed = true;
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        {
            auto connection = co_await client();
            co_await connection.start(head("GET", "/", id), 0);
            co_await connection.read_head();
            co_await connection.next();
        }
        asio::steady_timer timer(io_, std::chrono::milliseconds(300));
        co_await timer.async_wait(asio::use_awaitable);
        EXPECT_TRUE(noticed);
    });
}

TEST_F(ProxyTest, AnEarlyAnswerIsPassedOnWhileTheBodyStillComes) {
    serve([&](Exchange& e) -> awaitable<void> { co_await e.response.send_json(413, "{}"); });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        co_await connection.start(head("POST", "/", id), 100 << 20);
        co_await connection.write(std::string(10'000, 'x'));
        auto answer = co_await connection.read_head();
        EXPECT_TRUE(answer);
        EXPECT_EQ(answer->status, 413);
    });
}

// Bodies of known length are moved in the kernel; who is behind and who is in front must not notice.
TEST_F(ProxyTest, LargeAnswersPassWholeAndKeepTheConnection) {
    std::string large(5'000'003, '\0');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 + i / 251);
    int peers = 0;
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {}, large.size());
        for (std::size_t at = 0; at < large.size(); at += 700'001)
            co_await e.response.write(std::string_view(large).substr(at, 700'001));
        co_await e.response.finish();
        ++peers;
    });
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        auto connection = co_await client();
        for (int i = 0; i < 3; ++i) {
            auto response = co_await connection.request(head("GET", "/", id), "", 8'000'000);
            EXPECT_TRUE(response);
            EXPECT_TRUE(response && response->body == large);
            EXPECT_TRUE(connection.reusable());
        }
        auto none = co_await connection.request(head("HEAD", "/", id), "", 100);
        EXPECT_TRUE(none && none->body.empty());
    });
}

TEST_F(ProxyTest, ALargeAnswerThatEndsEarlyIsCutAndNotShort) {
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {}, 4'000'000);
        co_await e.response.write(std::string(1'000'000, 'x'));
        e.response.abort();
    });
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        auto connection = co_await client();
        EXPECT_FALSE(co_await connection.request(head("GET", "/", id), "", 8'000'000));
    });
}

TEST_F(ProxyTest, AKilledSandboxCutsALargeAnswer) {
    serve([&](Exchange& e) -> awaitable<void> {
        co_await e.response.start(200, {}, 4'000'000);
        co_await e.response.write(std::string(1'000'000, 'x'));
        co_await e.response.peer_closed();
    });
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        auto connection = co_await client();
        EXPECT_TRUE(co_await connection.start(head("GET", "/", id), 0));
        EXPECT_TRUE(co_await connection.read_head());
        std::size_t seen = 0;
        while (seen < 1'000'000) {
            auto piece = co_await connection.next();
            if (!piece) break;
            seen += piece->size();
        }
        EXPECT_EQ(seen, 1'000'000U);
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
        EXPECT_FALSE(co_await connection.next());
    });
}

TEST_F(ProxyTest, UpgradesBecomeBareBytes) {
    serve([&](Exchange& e) -> awaitable<void> {
        EXPECT_EQ(e.head.headers.get("Upgrade"), "websocket");
        std::string early;
        auto socket =
            co_await e.response.upgrade({101, {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}}, early);
        std::string got(4, '\0');
        co_await asio::async_read((*socket)->socket(), asio::buffer(got), asio::use_awaitable);
        const std::string reply = "<" + got + ">";
        co_await (*socket)->write(asio::buffer(reply));
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto connection = co_await client();
        auto h = head("GET", "/ws", id);
        h.headers.add("Connection", "Upgrade");
        h.headers.add("Upgrade", "websocket");
        co_await connection.start(std::move(h), 0);
        auto answer = co_await connection.read_head();
        EXPECT_EQ(answer->status, 101);
        std::string early;
        auto socket = connection.take_socket(early);
        co_await asio::async_write(socket, asio::buffer("ping", 4), asio::use_awaitable);
        std::string reply;
        co_await asio::async_read(socket, asio::dynamic_buffer(reply), kErrorTuple);
        EXPECT_EQ(reply, "<ping>");
    });
}

TEST_F(ProxyTest, AnUpgradeOverTlsBecomesBareBytes) {
    std::size_t received = 0;
    serve([&](Exchange& e) -> awaitable<void> {
        EXPECT_EQ(e.head.headers.get("X-Forwarded-Proto"), "https");
        std::string early;
        auto stream =
            co_await e.response.upgrade({101, {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}}}, early);
        std::string got = early;
        std::array<char, 100> room;
        for (;;) {  // until the client has ended its direction
            auto [ec, n] = co_await (*stream)->read_some(asio::buffer(room));
            if (ec) break;
            got.append(room.data(), n);
        }
        received = got.size();
        co_await (*stream)->write(asio::buffer("reply", 5));
    });
    run([&]() -> awaitable<void> {
        std::string id = co_await sandbox();
        auto h = head("GET", "/ws", id);
        h.headers.add("Connection", "Upgrade");
        h.headers.add("Upgrade", "websocket");
        auto client = co_await tls_client("\x08http/1.1");
        const std::string request = http::write_head(h);
        co_await asio::async_write(*client, asio::buffer(request), asio::use_awaitable);
        std::string answer;
        co_await asio::async_read_until(*client, asio::dynamic_buffer(answer), "\r\n\r\n", asio::use_awaitable);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 101")) << answer;
        const std::string text(100'000, 't');
        co_await asio::async_write(*client, asio::buffer(text), asio::use_awaitable);
        auto [ec] = co_await client->async_shutdown(kErrorTuple);
        // The answer came behind our goodbye, which Asio does not expect.
        EXPECT_EQ(ERR_GET_REASON(static_cast<unsigned long>(ec.value())), SSL_R_APPLICATION_DATA_AFTER_CLOSE_NOTIFY)
            << ec.message();
        EXPECT_EQ(received, text.size());
    });
}

TEST_F(ProxyTest, Http2ReachesTheSandboxAsHttp1) {
    std::set<unsigned short> peers;
    bool noticed = false;
    serve([&](Exchange& e) -> awaitable<void> {
        peers.insert(e.peer.port());
        co_await e.response.start(200, {{"X-Proto", std::string(e.head.headers.get("X-Forwarded-Proto"))}});
        for (;;) {
            auto piece = co_await e.body.next();
            if (!piece || piece->empty()) break;
            co_await e.response.write("<" + std::string(*piece) + ">");
        }
        if (e.target.path == "/wait") {
            co_await e.response.peer_closed();
            noticed = true;
        }
        co_await e.response.finish();
    });
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        http::testing::H2Client client(co_await tls_client("\x02h2"));
        client.authority = "127.0.0.1";
        const http::Headers route{{"e2b-sandbox-id", id}, {"e2b-sandbox-port", std::to_string(service_port_)}};
        for (int i = 0; i < 5; ++i) {
            const auto post = client.request("POST", "/a", route, "", false);
            client.add_body(post, "one", false);
            co_await client.until([&] { return client[post].text == "<one>"; });
            client.add_body(post, "two", true);
            co_await client.answer(post);
            EXPECT_EQ(client[post].text, "<one><two>");
            EXPECT_EQ(client[post].headers["x-proto"], "https");
            EXPECT_EQ(client[post].error, 0U);
        }
        peers.clear();
        for (int i = 0; i < 3; ++i) co_await client.answer(client.request("GET", "/a", route));
        EXPECT_EQ(peers.size(), 1U) << "the connection into the sandbox was not reused";
        const auto wait = client.request("GET", "/wait", route);
        co_await client.until([&] { return client[wait].status == 200; });
        client.reset(wait);
        co_await client.flush();
        asio::steady_timer pause(io_);
        while (!noticed) {
            pause.expires_after(std::chrono::milliseconds(5));
            co_await pause.async_wait(asio::use_awaitable);
        }
    });
}

// Contract 1.7: such a URL names its sandbox by nothing but the signature.
TEST_F(ProxyTest, ASignedFileUrlFindsItsSandbox) {
    run([&]() -> awaitable<void> {
        co_await sandbox();
        const std::string id = co_await sandbox();
        const std::string token = sandboxes_->get(team_, id)->access_token;
        auto ask = [&](std::string method, std::string target) -> awaitable<ClientConnection::Response> {
            auto connection = co_await client();
            http::RequestHead request{std::move(method), std::move(target), {{"Host", "127.0.0.1"}}};
            co_return *co_await connection.request(std::move(request), "", 10'000);
        };
        const std::string read =
            http::percent_encode(sign_url("/a b", FileOperation::read, "root", token, {}));
        const std::string expired = http::percent_encode(sign_url("x", FileOperation::write, "", token, 5));
        const std::string query = "/files?path=%2Fa%20b&username=root&signature=" + read;
        // The agent's port is closed here, and the answer says of which sandbox.
        auto found = co_await ask("GET", query);
        EXPECT_EQ(found.head.status, 502);
        EXPECT_NE(found.body.find(id), std::string::npos) << found.body;
        auto late = co_await ask("POST", "/files?path=x&signature_expiration=5&signature=" + expired);
        EXPECT_NE(late.body.find(id), std::string::npos) << late.body;

        EXPECT_EQ((co_await ask("POST", query)).head.status, 401);
        EXPECT_EQ((co_await ask("GET", "/files?path=%2Fother&username=root&signature=" + read)).head.status,
                  401);
        EXPECT_EQ((co_await ask("GET", "/files?path=x&signature=v1_AAAA")).head.status, 401);
        EXPECT_EQ((co_await ask("GET", "/process?signature=" + read)).head.status, 400);
        co_await sandboxes_->kill(team_, id);
        EXPECT_EQ((co_await ask("GET", query)).head.status, 401);
    });
}

}  // namespace
}  // namespace gb::ingress
