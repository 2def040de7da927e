// SPDX-License-Identifier: Apache-2.0
#include "egress/http_relay.h"

#include <boost/asio/post.hpp>

#include "egress/relay_fixture.h"

namespace gb::egress {
namespace {

using std::string_literals::operator""s;

// An answer's body; the end of the connection is not waited for.
awaitable<std::string> answer_of(Peer& peer, std::string* head_out = nullptr) {
    const std::string head = co_await peer.head();
    if (head_out != nullptr) *head_out = head;
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos)
        co_return co_await peer.exactly(std::stoul(head.substr(at + 16)));
    co_return "";
}

TEST_F(RelayTest, RequestsOneAfterAnotherOnOneConnection) {
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        for (int i = 0; i < 3; ++i) {
            co_await peer.send(get("a.test"));
            EXPECT_EQ(co_await answer_of(peer), "GET /p HTTP/1.1|");
        }
        EXPECT_EQ(asked_, (std::vector<std::string>{"a.test", "a.test", "a.test"}));
        EXPECT_EQ(opened_["a.test"], 1);
    });
}

TEST_F(RelayTest, EveryRequestIsJudgedByItsOwnHost) {
    errors_.emplace("evil.test", Error(ErrorCode::permission_denied, "deny: rule 3"));
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        for (const char* host : {"a.test", "b.test", "A.test:80"}) {
            co_await peer.send(get(host));
            EXPECT_EQ(co_await answer_of(peer), "GET /p HTTP/1.1|");
            EXPECT_NE(seen_.back().find("Host: " + std::string(host) + "\r\n"), std::string::npos);
        }
        co_await peer.send(get("evil.test") + get("a.test"));
        std::string head;
        EXPECT_EQ(co_await answer_of(peer, &head), R"({"code":403,"message":"deny: rule 3"})");
        EXPECT_TRUE(head.starts_with("HTTP/1.1 403 ")) << head;
        EXPECT_NE(head.find("Connection: close\r\n"), std::string::npos) << head;
        EXPECT_EQ(co_await peer.rest(), "");
        EXPECT_TRUE(peer.ended_properly());
        EXPECT_EQ(seen_.size(), 3U);
        EXPECT_EQ(opened_["evil.test"], 0);
    });
}

TEST_F(RelayTest, WhatCannotBeReached) {
    errors_.emplace("unknown.test", Error(ErrorCode::unavailable, "no such name"));
    errors_.emplace("slow.test", Error(ErrorCode::deadline_exceeded, "no answer of the resolver"));
    open_errors_.emplace("closed.test", Error(ErrorCode::unavailable, "connection refused"));
    open_errors_.emplace("cert.test", Error(ErrorCode::failed_precondition, "certificate"));
    open_errors_.emplace("private.test", Error(ErrorCode::permission_denied, "private address"));
    run([&]() -> awaitable<void> {
        for (const auto& [host, status] : std::map<std::string, int>{{"unknown.test", 502},
                                                                     {"slow.test", 502},
                                                                     {"closed.test", 502},
                                                                     {"cert.test", 502},
                                                                     {"private.test", 403}}) {
            const std::string answer = co_await raw(get(host) + get("a.test"));
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(status))) << host << answer;
            EXPECT_TRUE(answer.ends_with("\"}")) << answer;
            EXPECT_TRUE(properly_);
        }
        EXPECT_EQ(seen_.size(), 0U);
    });
}

TEST_F(RelayTest, HostsThatAreNone) {
    run([&]() -> awaitable<void> {
        for (const std::string fields : {"", "Host:\r\n", "Host:  \r\n", "Host: a.test\r\nHost: b.test\r\n",
                                         "Host: a.test\r\nhost: a.test\r\n"}) {
            const std::string answer = co_await raw("GET / HTTP/1.1\r\n" + fields + "\r\n");
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
            EXPECT_NE(answer.find("\"no-name: "), std::string::npos) << answer;
        }
        EXPECT_TRUE((co_await raw("GET / HTTP/1.0\r\n\r\n")).starts_with("HTTP/1.1 403"));
        EXPECT_TRUE((co_await raw("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"))
                        .starts_with("HTTP/1.1 403"));
        EXPECT_TRUE(asked_.empty());
    });
}

TEST_F(RelayTest, TargetsPassByteForByte) {
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        for (const std::string target :
             {"/../%2e%2e/a//b/./c?x=%zz&y=\xc3\xa9", "//evil.test/x", "/?", "/%00", "/#f"}) {
            co_await peer.send("GET " + target + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
            EXPECT_EQ(co_await answer_of(peer), "GET " + target + " HTTP/1.1|");
        }
        co_await peer.send("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n");
        EXPECT_EQ(co_await answer_of(peer), "OPTIONS * HTTP/1.1|");
        for (const auto& [target, passed] :
             std::vector<std::pair<std::string, std::string>>{{"http://a.test/x/../y?q", "/x/../y?q"},
                                                              {"HTTP://A.TEST:80", "/"},
                                                              {"http://a.test?q", "/?q"}}) {
            co_await peer.send("GET " + target + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
            EXPECT_EQ(co_await answer_of(peer), "GET " + passed + " HTTP/1.1|");
        }
        for (const std::string target :
             {"http://b.test/", "http://b.test@a.test/", "http://a.test@b.test/", "https://a.test/",
              "http:///", "http://a.test:81/", "http://a.test#@b.test/", "a.test", "*", "x", "ftp://a.test/",
              "http:/a.test/", "http://a.test\\@b.test/"}) {
            const std::string answer = co_await raw("GET " + target + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << target << answer;
        }
        EXPECT_EQ(seen_.size(), 9U);
    });
}

TEST_F(RelayTest, WhatCouldBeUnderstoodInTwoWaysGoesNowhere) {
    run([&]() -> awaitable<void> {
        for (
            const std::string& request :
            {"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
             "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"s,
             "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip\r\n\r\n"s,
             "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"s,
             "GET / HTTP/1.1\r\nHost: a.test\r\n b\r\n\r\n"s, "GET / HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n"s,
             "GET / HTTP/1.1\nHost: a.test\n\n"s, "GET / HTTP/1.1\r\nHost: a.test\rX: y\r\n\r\n"s,
             "GET / HTTP/1.1\r\nHost: a\0.test\r\n\r\n"s, "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n"s,
             "GET /\r\n"s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s, "\x16\x03\x01\0\x05hello\r\n\r\n"s}) {
            const std::string answer = co_await raw(request);
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << request << answer;
            EXPECT_NE(answer.find("Connection: close"), std::string::npos);
            EXPECT_TRUE(answer.ends_with("\"}"));
        }
        EXPECT_TRUE(asked_.empty());
        const std::string large = co_await raw(get("a.test", "X: " + std::string(70'000, 'x') + "\r\n"));
        EXPECT_TRUE(large.starts_with("HTTP/1.1 431")) << large;
        EXPECT_TRUE(asked_.empty());
    });
}

TEST_F(RelayTest, BytesThatComeOneByOneAreReadTheSame) {
    upstreams_["slow.test"] = [&](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        for (char c :
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nT: u\r\n\r\n"s) {
            co_await peer.send(std::string(1, c));
            co_await asio::post(io_, asio::use_awaitable);
        }
        co_await peer.rest();
    };
    run([&]() -> awaitable<void> {
        auto drip = [&](Peer& peer, std::string text) -> awaitable<void> {
            for (char c : text) {
                co_await peer.send(std::string(1, c));
                for (int i = 0; i < 4; ++i) co_await asio::post(io_, asio::use_awaitable);
            }
        };
        Peer peer = co_await guest();
        co_await drip(peer, "POST /p HTTP/1.1\r\nHost: a.test\r\nX: y\r\nContent-Length: 2\r\n\r\nhi");
        EXPECT_EQ(co_await answer_of(peer), "POST /p HTTP/1.1|hi");
        co_await peer.send(get("slow.test"));
        EXPECT_NE((co_await peer.head()).find("chunked"), std::string::npos);
        EXPECT_EQ(co_await peer.until("0\r\n\r\n"), "1\r\no\r\n1\r\nk\r\n0\r\n\r\n");
        co_await drip(peer, "GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n z\r\n");
        EXPECT_TRUE((co_await peer.rest()).starts_with("HTTP/1.1 400"));
        EXPECT_EQ(asked_.size(), 2U);
    });
}

TEST_F(RelayTest, OnlyWhatIsForTheServerIsPassedOn) {
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(
            get("a.test",
                "Connection: keep-alive, X-Mine, Host, Upgrade, HTTP2-Settings\r\nX-Mine: 1\r\n"
                "Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
                "Proxy-Authorization: x\r\nProxy-Connection: x\r\nAccept: b\r\n"));
        EXPECT_EQ(co_await answer_of(peer), "GET /p HTTP/1.1|");
        EXPECT_EQ(seen_.at(0), "GET /p HTTP/1.1\r\nHost: a.test\r\nAccept: b\r\n\r\n");
    });
}

TEST_F(RelayTest, HeadersAreSetOnEachRequestOfTheirHost) {
    rules_["a.test"] = {{"Authorization", "Bearer ${e2b.secrets.t}"}, {"X-Plain", "p"}};
    secrets_["t"] = "first";
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(
            get("a.test", "authorization: mine\r\nConnection: Authorization\r\nAUTHORIZATION: 2\r\n"));
        co_await answer_of(peer);
        EXPECT_EQ(seen_.back(),
                  "GET /p HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer first\r\nX-Plain: p\r\n\r\n");
        secrets_["t"] = "second";
        co_await peer.send(get("a.test"));
        co_await answer_of(peer);
        EXPECT_NE(seen_.back().find("Bearer second"), std::string::npos);
        co_await peer.send(get("b.test"));
        co_await answer_of(peer);
        EXPECT_EQ(seen_.back(), "GET /p HTTP/1.1\r\nHost: b.test\r\n\r\n");
        // TRACE would show them to the guest.
        for (const std::string method : {"TRACE", "trace", "TRACK"}) {
            const std::string traced = co_await raw(method + " / HTTP/1.1\r\nHost: a.test\r\n\r\n");
            EXPECT_TRUE(traced.starts_with("HTTP/1.1 403")) << traced;
            EXPECT_EQ(traced.find("second"), std::string::npos);
        }
        EXPECT_TRUE((co_await raw("TRACE / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n"))
                        .starts_with("HTTP/1.1 200"));
        for (const std::string value : {"bad\r\nX: y", "bad\n"}) {
            secrets_["t"] = value;
            const std::string answer = co_await raw(get("a.test"));
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << answer;
            EXPECT_EQ(answer.find("bad"), std::string::npos) << answer;
        }
        secrets_.clear();
        EXPECT_TRUE((co_await raw(get("a.test"))).starts_with("HTTP/1.1 403"));
        EXPECT_EQ(seen_.size(), 4U) << "nothing was sent without its header";
    });
}

TEST_F(RelayTest, PipelinedRequestsKeepOrderAndBytes) {
    run([&]() -> awaitable<void> {
        const std::string body = "\xff\xfe\r\n\r\nGET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n";
        std::string all;
        for (int i = 0; i < 20; ++i)
            all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: " + (i % 3 == 0 ? "a" : "b") +
                   ".test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        Peer peer = co_await guest();
        co_await peer.send(all);
        for (int i = 0; i < 20; ++i)
            EXPECT_EQ(co_await answer_of(peer), "POST /" + std::to_string(i) + " HTTP/1.1|" + body);
        EXPECT_EQ(asked_.size(), 20U);
    });
}

TEST_F(RelayTest, ChunksAreMadeAnewWithoutTrailersAndExtensions) {
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\r\n\r\n0\r\n"
            "Host: evil.test\r\nX-Trailer: 1\r\n\r\n");
        EXPECT_EQ(co_await answer_of(peer), "POST / HTTP/1.1|3\r\na\r\n\r\n0\r\n\r\n");
        co_await peer.send(get("a.test"));
        EXPECT_EQ(co_await answer_of(peer), "GET /p HTTP/1.1|");
    });
}

TEST_F(RelayTest, ABrokenBodyEndsBothConnections) {
    bool ended = false;
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        const std::string got = co_await peer.rest();
        EXPECT_EQ(got.find("evil"), std::string::npos) << got;
        EXPECT_FALSE(got.ends_with("0\r\n\r\n"));
        ended = true;
    };
    run([&]() -> awaitable<void> {
        const std::string answer = co_await raw(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\nGET "
            "/evil HTTP/1.1\r\n\r\n");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << answer;
        co_await wait_until([&] { return ended; });
    });
}

TEST_F(RelayTest, PiecesPassAtOnceInBothDirections) {
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        // Nothing of the next piece is there before this one was answered.
        EXPECT_EQ(co_await peer.until("one\r\n"), "3\r\none\r\n");
        co_await peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        co_await peer.send("5\r\nfirst\r\n");
        EXPECT_EQ(co_await peer.until("two\r\n"), "3\r\ntwo\r\n");
        co_await peer.send("6\r\nsecond\r\n");
        EXPECT_EQ(co_await peer.until("0\r\n\r\n"), "0\r\n\r\n");
        co_await peer.send("0\r\nX-Trailer: 1\r\n\r\n");
        co_await peer.rest();
    };
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        EXPECT_NE((co_await peer.head()).find("Transfer-Encoding: chunked"), std::string::npos);
        EXPECT_EQ(co_await peer.until("first\r\n"), "5\r\nfirst\r\n");
        co_await peer.send("3\r\ntwo\r\n");
        EXPECT_EQ(co_await peer.until("second\r\n"), "6\r\nsecond\r\n");
        co_await peer.send("0\r\n\r\n");
        EXPECT_EQ(co_await peer.until("0\r\n\r\n"), "0\r\n\r\n");
    });
}

TEST_F(RelayTest, LargeBodiesPassWhileNobodyHoldsThem) {
    const std::size_t size = 40 << 20;
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        std::size_t left = size;
        co_await peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
        while (left > 0) {
            const std::string piece = co_await peer.exactly(std::min<std::size_t>(left, 100'000));
            if (piece.empty()) co_return;
            left -= piece.size();
            co_await peer.send(piece);
        }
    };
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        const std::string body(size, 'u');
        bool sent = false;
        asio::co_spawn(io_,
                       peer.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: " +
                                 std::to_string(size) + "\r\n\r\n" + body),
                       [&](const std::exception_ptr&, bool) { sent = true; });
        EXPECT_NE((co_await peer.head()).find("Content-Length: " + std::to_string(size)), std::string::npos);
        EXPECT_TRUE(co_await peer.exactly(size) == body);
        EXPECT_TRUE(sent);
        EXPECT_GE(relays_[0]->counters().up, size);
        EXPECT_GE(relays_[0]->counters().down, size);
        EXPECT_LT(relays_[0]->counters().up, size + 1000);
    });
}

TEST_F(RelayTest, LargeAnswersAreCountedToTheByteAndTheConnectionsStay) {
    std::string body;
    while (body.size() < 3 << 20) body += std::to_string(body.size()) + " ";
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        while ((co_await peer.head()).ends_with("\r\n\r\n")) co_await peer.send(head + body);
    };
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        for (std::size_t n = 1; n <= 3; ++n) {
            co_await peer.send(get("a.test"));
            co_await peer.head();
            EXPECT_TRUE(co_await peer.exactly(body.size()) == body);
            co_await wait_until(
                [&] { return relays_[0]->counters().down == n * (head.size() + body.size()); });
        }
        EXPECT_EQ(opened_["a.test"], 1);
    });
}

TEST_F(RelayTest, ALargeAnswerThatEndsEarlyIsCut) {
    answers("a.test", "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + std::string(1'000'000, 'x'));
    run([&]() -> awaitable<void> {
        const std::string answer = co_await raw(get("a.test"));
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
        EXPECT_LT(answer.size(), 2'000'000U);
    });
}

TEST_F(RelayTest, ExpectIsAnswered) {
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
        EXPECT_EQ(co_await peer.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        co_await peer.send("hi");
        EXPECT_EQ(co_await answer_of(peer), "POST / HTTP/1.1|hi");
        EXPECT_EQ(seen_.back().find("Expect"), std::string::npos);
    });
}

TEST_F(RelayTest, AnEarlyAnswerPasses) {
    answers("a.test", "HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nbig", /*then_end=*/false);
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab");
        EXPECT_EQ(co_await answer_of(peer), "big");
        co_await peer.send("cde" + get("b.test"));
        EXPECT_EQ(co_await answer_of(peer), "GET /p HTTP/1.1|");
        // The connection whose request was not finished is not used again.
        co_await peer.send(get("a.test"));
        EXPECT_EQ(co_await answer_of(peer), "big");
        EXPECT_EQ(opened_["a.test"], 2);
    });
}

TEST_F(RelayTest, AnswersOfEveryShape) {
    answers("interim.test",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX: y\r\n\r\nok");
    answers("old.test", "HTTP/1.0 200 OK\r\n\r\nuntil the end");
    answers("empty.test", "HTTP/1.1 204 No Content\r\n\r\n", false);
    answers("same.test", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: e\r\n\r\n", false);
    answers("head.test", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", false);
    answers("bytes.test", "HTTP/1.1 200 \xff\r\nX: \xff\r\nContent-Length: 3\r\n\r\n\xff\0\x01"s, false);
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        std::string head;
        co_await peer.send(get("interim.test"));
        EXPECT_EQ(co_await answer_of(peer, &head), "ok");
        EXPECT_EQ(head, "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\n");
        co_await peer.send(get("old.test"));
        EXPECT_NE((co_await peer.head()).find("Transfer-Encoding: chunked"), std::string::npos);
        EXPECT_EQ(co_await peer.until("0\r\n\r\n"), "d\r\nuntil the end\r\n0\r\n\r\n");
        co_await peer.send(get("empty.test"));
        EXPECT_EQ(co_await peer.head(), "HTTP/1.1 204 No Content\r\n\r\n");
        co_await peer.send(get("same.test"));
        EXPECT_EQ(co_await peer.head(), "HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n");
        co_await peer.send("HEAD / HTTP/1.1\r\nHost: head.test\r\n\r\n");
        EXPECT_EQ(co_await peer.head(), "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
        co_await peer.send(get("bytes.test"));
        EXPECT_EQ(co_await answer_of(peer), "\xff\0\x01"s);
        EXPECT_TRUE(
            (co_await raw("GET / HTTP/1.0\r\nHost: old.test\r\n\r\n")).ends_with("\r\n\r\nuntil the end"));
        EXPECT_TRUE(properly_);
    });
}

TEST_F(RelayTest, AKeptConnectionThatWasClosedIsMadeAnew) {
    // The first connection ends after one answer without having said so; the second when the next request
    // comes.
    upstreams_["a.test"] = [&](Peer& peer, int n) -> awaitable<void> {
        co_await peer.head();
        co_await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(n));
        if (n == 1) co_await peer.head();
        if (n < 2) co_return;
        co_await echo(peer);
    };
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        for (int i = 0; i < 3; ++i) {
            co_await peer.send(get("a.test"));
            EXPECT_EQ(co_await answer_of(peer), std::to_string(i));
            co_await wait_until([&] { return true; });
        }
        EXPECT_EQ(opened_["a.test"], 3);
    });
    // What may not be sent twice is not.
    upstreams_["b.test"] = [&](Peer& peer, int) -> awaitable<void> {
        co_await peer.head();
        co_await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        seen_.push_back(co_await peer.head());
    };
    seen_.clear();
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(get("b.test"));
        co_await answer_of(peer);
        co_await peer.send("POST / HTTP/1.1\r\nHost: b.test\r\nContent-Length: 0\r\n\r\n");
        EXPECT_TRUE((co_await peer.rest()).starts_with("HTTP/1.1 502"));
        EXPECT_EQ(seen_.size(), 1U);
        EXPECT_EQ(opened_["b.test"], 1);
    });
}

TEST_F(RelayTest, AWebsocketBecomesATunnel) {
    upstreams_["a.test"] = [&](Peer& peer, int) -> awaitable<void> {
        seen_.push_back(co_await peer.head());
        co_await peer.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: k\r\n\r\nearly");
        EXPECT_EQ(co_await peer.exactly(9), "\xff\0GET / \r\n"s.substr(0, 9));
        co_await peer.send("pong");
        peer.end();
        EXPECT_EQ(co_await peer.rest(), "late");
    };
    run([&]() -> awaitable<void> {
        Peer peer = co_await guest();
        co_await peer.send(get(
            "a.test", "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n"));
        EXPECT_EQ(co_await peer.head(),
                  "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: k\r\n"
                  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        EXPECT_EQ(co_await peer.exactly(5), "early");
        const auto before = relays_[0]->counters();
        co_await peer.send("\xff\0GET / \r\n"s.substr(0, 9));
        EXPECT_EQ(co_await peer.exactly(4), "pong");
        EXPECT_EQ(relays_[0]->counters().up - before.up, 9U);
        EXPECT_EQ(relays_[0]->counters().down - before.down, 4U);
        EXPECT_EQ(co_await peer.rest(), "");
        co_await peer.send("late");
        peer.end();
        co_await wait_until([&] { return running_ == 0; });
        EXPECT_EQ(asked_.size(), 1U);
        EXPECT_NE(seen_[0].find("Connection: Upgrade\r\nUpgrade: WebSocket\r\n"), std::string::npos)
            << seen_[0];
    });
}

TEST_F(RelayTest, NoOtherUpgrade) {
    answers("a.test", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nbytes");
    run([&]() -> awaitable<void> {
        for (const std::string fields :
             {"", "Connection: Upgrade\r\nUpgrade: h2c\r\n",
              "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", "Upgrade: websocket\r\n",
              "Connection: Upgrade\r\nUpgrade: websocket\r\n"}) {
            const std::string answer = co_await raw(get("a.test", fields));
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 502")) << fields << answer;
            const bool asked = fields == "Connection: Upgrade\r\nUpgrade: websocket\r\n";
            EXPECT_EQ(seen_.back().find("Upgrade") != std::string::npos, asked) << seen_.back();
        }
        // With a body, or in HTTP/1.0, it is not one either.
        (void)co_await raw(
            "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        EXPECT_EQ(seen_.back().find("Upgrade"), std::string::npos);
    });
}

}  // namespace
}  // namespace gb::egress
