// SPDX-License-Identifier: Apache-2.0
// Upstreams that mean ill, guests that leave, limits, and the end of a sandbox.
#include "base/error_tuple.h"
#include "base/file.h"
#include "base/ids.h"
#include "egress/certificate_authority.h"
#include "egress/relay_fixture.h"
#include "http/tls_handshake.h"

namespace gb::egress {
namespace {

using std::string_literals::operator""s;
using RelayHostileTest = RelayTest;

// The heads of all answers that the guest was sent.
std::size_t answers_in(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string::npos; ++at) ++count;
    return count;
}

TEST_F(RelayHostileTest, WhatIsNoAnswerIsA502) {
    run([&]() -> awaitable<void> {
        for (const std::string& bytes :
             {""s, "garbage"s, "garbage\r\n\r\n"s, "\x15\x03\x01\0\x02\x02\x28"s, "HTTP/2 200 OK\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\n"s, "HTTP/1.1 200 OK\r\nX: y\n\r\n"s,
              "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"s, "HTTP/1.1 20 OK\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n"s, "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"s,
              "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"s, "HTTP/1.1 200 OK\r\nX : y\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nX: "s + std::string(300'000, 'x'), std::string(300'000, 'H')}) {
            answers("a.test", bytes);
            const std::string answer = co_await raw(get("a.test") + get("b.test"));
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << bytes.substr(0, 60) << " => " << answer;
            EXPECT_TRUE(answer.ends_with("\"}")) << answer;
            EXPECT_EQ(answers_in(answer), 1U);
            EXPECT_TRUE(properly_);
        }
        std::string interim;
        for (int i = 0; i < 1000; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
        answers("a.test", interim);
        EXPECT_TRUE((co_await raw(get("a.test"))).starts_with("HTTP/1.1 502 "));
    });
}

TEST_F(RelayHostileTest, WhatBreaksOffIsCut) {
    run([&]() -> awaitable<void> {
        for (const std::string& bytes :
             {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nxyz\r\n"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalfmore\r\n0\r\n\r\n"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nfffffffffffffffffff\r\n"s,
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n1;"s +
                  std::string(400'000, 'x'),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nX: "s +
                  std::string(400'000, 'x')}) {
            answers("a.test", bytes);
            const std::string answer = co_await raw(get("a.test") + get("b.test"));
            EXPECT_EQ(answers_in(answer), 1U) << answer;
            EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << "a guest could take it for whole";
            const std::string old = co_await raw("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
            EXPECT_FALSE(properly_) << "a guest could take it for whole";
        }
        EXPECT_EQ(opened_["b.test"], 0);
    });
}

TEST_F(RelayHostileTest, MoreThanWasAnnouncedIsNobodys) {
    answers("a.test",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: "
            "4\r\nSet-Cookie: x\r\n\r\nevil",
            false);
    answers("empty.test", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil", false);
    run([&]() -> awaitable<void> {
        for (const std::string host : {"a.test", "empty.test"}) {
            Peer peer = co_await guest();
            co_await peer.send(get(host));
            std::string got = co_await peer.head();
            if (host == "a.test") got += co_await peer.exactly(2);
            co_await peer.send(get("b.test", "Connection: close\r\n"));
            got += co_await peer.rest();
            EXPECT_EQ(answers_in(got), 2U) << got;
            EXPECT_EQ(got.find("evil"), std::string::npos);
            // Nor the next request's: that has a connection of its own.
            Peer again = co_await guest();
            co_await again.send(get(host));
            co_await again.head();
            co_await again.send(get(host));
            EXPECT_EQ((co_await again.head()).find("x"), std::string::npos);
        }
        EXPECT_EQ(opened_["a.test"], 3);
    });
}

TEST_F(RelayHostileTest, ASlowAnswerHasALimitOfTime) {
    upstreams_["a.test"] = [](Peer& peer, int) -> awaitable<void> { co_await peer.rest(); };
    upstreams_["drip.test"] = [&](Peer& peer, int) -> awaitable<void> {
        asio::steady_timer pause(io_);
        while (co_await peer.send("H")) {
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(asio::use_awaitable);
        }
    };
    run([&]() -> awaitable<void> {
        for (const char* host : {"a.test", "drip.test"}) {
            RelayOptions quick = options();
            quick.answer_timeout = std::chrono::seconds(1);
            const std::string answer = co_await raw(get(host), std::move(quick));
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 502")) << answer;
        }
    });
}

TEST_F(RelayHostileTest, WhatStandsStillIsCut) {
    upstreams_["a.test"] = [](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        co_await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        co_await peer.rest();
    };
    run([&]() -> awaitable<void> {
        RelayOptions quick = options();
        quick.stall_timeout = std::chrono::seconds(1);
        const std::string answer = co_await raw(get("a.test"), std::move(quick));
        EXPECT_FALSE(properly_);
        RelayOptions idle = options();
        idle.idle_timeout = std::chrono::seconds(1);
        EXPECT_EQ(co_await raw("", std::move(idle)), "");
        RelayOptions slow = options();
        slow.header_timeout = std::chrono::seconds(1);
        EXPECT_EQ(co_await raw("GET / HTT", std::move(slow)), "");
    });
}

TEST_F(RelayHostileTest, AGuestThatLeavesEndsItsUpstream) {
    int ended = 0;
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        co_await peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        co_await peer.rest();
        ++ended;
    };
    run([&]() -> awaitable<void> {
        for (int i = 0; i < 2; ++i) {
            Peer peer = co_await guest();
            co_await peer.send(get("a.test"));
            co_await peer.until("a\r\n");
            if (i == 0) peer.close();
            if (i == 1) peer.end();
            co_await wait_until([&] { return ended == i + 1 && running_ == 0; });
        }
    });
}

TEST_F(RelayHostileTest, StopCutsBothSidesAtAnyTime) {
    int ended = 0;
    auto hold = [&](Peer& peer, std::string bytes) -> awaitable<void> {
        co_await peer.head();
        co_await peer.send(std::move(bytes));
        co_await peer.rest();
        ++ended;
    };
    upstreams_["silent.test"] = [&](Peer& peer, int) { return hold(peer, ""); };
    upstreams_["half.test"] = [&](Peer& peer, int) {
        return hold(peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    };
    upstreams_["ws.test"] = [&](Peer& peer, int) {
        return hold(peer, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    };
    run([&]() -> awaitable<void> {
        int expected = 0;
        for (const std::string& request :
             {get("silent.test"), get("half.test"),
              get("ws.test", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
              "POST / HTTP/1.1\r\nHost: silent.test\r\nContent-Length: 10\r\n\r\nhalf"s}) {
            Peer peer = co_await guest();
            co_await peer.send(request);
            ++expected;
            if (request.find("half.test") != std::string::npos) co_await peer.until("half");
            if (request.find("ws.test") != std::string::npos) co_await peer.head();
            if (request.find("silent.test") != std::string::npos)
                co_await wait_until([&] { return relays_.back()->counters().up > 0; });
            relays_.back()->stop();
            relays_.back()->stop();
            co_await peer.rest();
            EXPECT_FALSE(peer.ended_properly());
            co_await wait_until([&] { return ended == expected && running_ == 0; });
        }
        // In the middle of a head, while a route is looked for, while a connection is made, before it runs.
        Peer idle = co_await guest();
        co_await idle.send("GET /");
        relays_.back()->stop();
        co_await idle.rest();
        asio::steady_timer gate(io_, std::chrono::hours(1));
        bool waiting = false;
        auto wait = [&]() -> awaitable<void> {
            waiting = true;
            co_await gate.async_wait(kErrorTuple);
        };
        for (const bool in_route : {true, false}) {
            RelayOptions slow = options();
            gate.expires_after(std::chrono::hours(1));
            waiting = false;
            slow.route = [&, in_route](std::string_view) -> awaitable<Result<Route>> {
                if (in_route) co_await wait();
                Route out{.key = "x"};
                out.open = [&]() -> awaitable<Result<std::shared_ptr<Stream>>> {
                    co_await wait();
                    co_return co_await open("silent.test");
                };
                co_return out;
            };
            Peer peer = co_await guest(std::move(slow));
            co_await peer.send(get("a.test"));
            co_await wait_until([&] { return waiting; });
            relays_.back()->stop();
            co_await peer.rest();
            gate.cancel();
            co_await wait_until([&] { return running_ == 0; });
        }
        co_await wait_until([&] { return ended == expected + 1; });
        auto [near, far] = co_await http::testing::socket_pair(io_);
        auto early =
            std::make_shared<HttpRelay>(std::make_shared<http::TcpStream>(std::move(far)), options());
        early->stop();
        co_await early->run();
        Peer peer(std::move(near));
        EXPECT_EQ(co_await peer.rest(), "");
    });
}

// A guest that trusts its sandbox's authority, a relay between, an upstream that proves its name with another
// one.
TEST_F(RelayHostileTest, ThroughTlsOnBothSides) {
    constexpr auto kLimit = std::chrono::seconds(5);
    const auto dir = std::filesystem::temp_directory_path() / ("gb-relay-" + random_id(10));
    ASSERT_TRUE(make_dirs(dir));
    auto sandbox = *CertificateAuthority::make("i1"), internet = *CertificateAuthority::make("i2");
    ASSERT_TRUE(write_file_atomic(dir / "sandbox.pem", sandbox.pem()));
    ASSERT_TRUE(write_file_atomic(dir / "internet.pem", internet.pem()));
    auto guest_tls = *http::ClientTls::make(dir / "sandbox.pem"),
         relay_tls = *http::ClientTls::make(dir / "internet.pem");
    std::string certificate_of = "a.test";
    auto serve = [&](tcp::socket socket) -> awaitable<void> {
        auto stream =
            co_await http::accept_tls(std::move(socket), *internet.leaf(certificate_of), "", kLimit);
        if (!stream) co_return;
        Peer peer(*stream);
        co_await echo(peer);
    };
    run([&]() -> awaitable<void> {
        for (const std::string name : {"a.test", "other.test"}) {
            certificate_of = name;
            RelayOptions with = options();
            with.route = [&](std::string_view) -> awaitable<Result<Route>> {
                Route out{.key = "a"};
                out.rules = {{"Authorization", "${e2b.secrets.t}"}};
                out.secrets = [](std::string_view) -> Result<std::string> { return "token"; };
                out.open = [&]() -> awaitable<Result<std::shared_ptr<Stream>>> {
                    auto [near, far] = co_await http::testing::socket_pair(io_);
                    asio::co_spawn(io_, serve(std::move(far)), asio::detached);
                    co_return co_await relay_tls->connect(std::move(near), "a.test", kLimit);
                };
                co_return out;
            };
            auto [near, far] = co_await http::testing::socket_pair(io_);
            auto intercept = [&, with](tcp::socket socket) mutable -> awaitable<void> {
                auto stream =
                    co_await http::accept_tls(std::move(socket), *sandbox.leaf("a.test"), "", kLimit);
                EXPECT_TRUE(stream);
                if (stream) start(*stream, std::move(with));
            };
            asio::co_spawn(io_, intercept(std::move(far)), asio::detached);
            auto stream = co_await guest_tls->connect(std::move(near), "a.test", kLimit);
            EXPECT_TRUE(stream);
            if (!stream) co_return;
            Peer peer(*stream);
            for (int i = 0; i < 2; ++i) {
                co_await peer.send("GET https://a.test/p HTTP/1.1\r\nHost: a.test\r\n\r\n");
                const std::string head = co_await peer.head();
                if (name == "a.test") {
                    EXPECT_TRUE(head.starts_with("HTTP/1.1 200")) << head;
                    EXPECT_EQ(co_await peer.exactly(16), "GET /p HTTP/1.1|");
                    EXPECT_EQ(seen_.back(),
                              "GET /p HTTP/1.1\r\nHost: a.test\r\nAuthorization: token\r\n\r\n");
                } else {
                    EXPECT_TRUE(head.starts_with("HTTP/1.1 502")) << head;
                    EXPECT_EQ(
                        co_await peer.rest(),
                        R"({"code":502,"message":"the certificate was not accepted: hostname mismatch"})");
                    EXPECT_TRUE(peer.ended_properly());
                    break;
                }
            }
            EXPECT_EQ(seen_.size(), 2U);
        }
    });
    ASSERT_TRUE(remove_tree(dir));
}

}  // namespace
}  // namespace gb::egress
