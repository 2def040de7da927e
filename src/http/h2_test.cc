// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>

#include "base/error_tuple.h"
#include "http/https_testing.h"

namespace gb::http {
namespace {

using testing::H2Client;
using testing::HttpsTest;

constexpr std::size_t kSize = 64 << 20;

class H2Test : public HttpsTest {
  protected:
    // As `run`, with a client that is connected.
    void run_h2(std::function<awaitable<void>(H2Client&)> body, std::uint32_t window = 1 << 20) {
        run([&, body, window]() -> awaitable<void> {
            H2Client client(co_await connect("\x02h2\x08http/1.1"), window);
            co_await body(client);
        });
    }
};

std::string describe(const Headers& headers) {
    std::string out;
    for (const auto& [name, value] : headers.items()) out += name + "=" + value + ";";
    return out;
}

awaitable<void> echo(Exchange& exchange) {
    auto body = co_await exchange.body.read_all(64 << 20);
    if (!body) co_return;
    co_await exchange.response.send(
        200, {{"X-Seen", describe(exchange.head.headers)}, {"Connection", "keep-alive"}},
        exchange.head.method + exchange.head.target + *body);
}

// What comes in, at once.
awaitable<void> echo_pieces(Exchange& exchange) {
    co_await exchange.response.start(200, {});
    for (;;) {
        auto piece = co_await exchange.body.next();
        if (!piece || piece->empty()) break;
        co_await exchange.response.write(*piece);
    }
    co_await exchange.response.finish();
}

TEST_F(H2Test, HandlersSeeWhatHttp1WouldHaveSaid) {
    start(echo);
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto get =
            client.request("GET", "/a?b=%20", {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}});
        const auto post = client.request("POST", "/p", {{"content-length", "2"}}, "hi");
        const auto unknown = client.request("PUT", "/u", {}, "length");
        for (auto id : {get, post, unknown}) co_await client.answer(id);
        EXPECT_EQ(client[get].status, 200);
        EXPECT_EQ(client[get].text, "GET/a?b=%20");
        EXPECT_EQ(client[get].headers["x-seen"], "x=y;cookie=a=1; b=2;host=host;");
        EXPECT_EQ(client[get].headers["content-length"], "11");
        EXPECT_FALSE(client[get].headers.contains("connection"));
        EXPECT_EQ(client[post].text, "POST/phi");
        EXPECT_EQ(client[post].headers["x-seen"], "content-length=2;host=host;");
        EXPECT_EQ(client[unknown].text, "PUT/ulength");
        EXPECT_EQ(client[unknown].headers["x-seen"], "host=host;transfer-encoding=chunked;");
        for (auto id : {get, post, unknown}) EXPECT_EQ(client[id].error, NGHTTP2_NO_ERROR);
    });
}

TEST_F(H2Test, FiftyBodiesInterleavedStayApart) {
    start(echo_pieces);
    run_h2([](H2Client& client) -> awaitable<void> {
        std::vector<std::int32_t> ids;
        std::map<std::int32_t, std::string> sent;
        for (int i = 0; i < 50; ++i)
            ids.push_back(client.request("POST", "/" + std::to_string(i), {}, "", false));
        for (int round = 0; round < 20; ++round) {
            for (auto id : ids) {
                const std::string piece(static_cast<std::size_t>(1000 + id),
                                        static_cast<char>('a' + (id + round) % 26));
                sent[id] += piece;
                client.add_body(id, piece, round == 19);
            }
            // Each piece comes back before the next one is sent.
            co_await client.until([&] {
                return std::ranges::all_of(ids,
                                           [&](auto id) { return client[id].received == sent[id].size(); });
            });
        }
        for (auto id : ids) {
            co_await client.answer(id);
            EXPECT_EQ(client[id].status, 200);
            EXPECT_TRUE(client[id].text == sent[id]);
        }
    });
}

TEST_F(H2Test, LargeBodiesBothWays) {
    start([](Exchange& exchange) -> awaitable<void> {
        if (exchange.head.method == "GET") {
            const std::string piece(100'000, 'd');
            co_await exchange.response.start(200, {}, kSize);
            for (std::size_t left = kSize; left > 0;) {
                const std::size_t n = std::min(left, piece.size());
                if (!co_await exchange.response.write(std::string_view(piece).substr(0, n))) co_return;
                left -= n;
            }
            co_await exchange.response.finish();
            co_return;
        }
        std::uint64_t sum = 0, size = 0;
        for (;;) {
            auto piece = co_await exchange.body.next();
            EXPECT_TRUE(piece);
            if (!piece || piece->empty()) break;
            EXPECT_LE(piece->size(), 128U * 1024);
            size += piece->size();
            for (char c : *piece) sum += static_cast<unsigned char>(c);
        }
        co_await exchange.response.send(200, {}, std::to_string(size) + " " + std::to_string(sum));
    });
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto up = client.request("POST", "/", {}, "", false);
        const auto down = client.request("GET", "/");
        client[down].keep = false;
        std::string piece(1 << 20, '\0');
        std::iota(piece.begin(), piece.end(), '\0');
        std::uint64_t sum = 0;
        for (char c : piece) sum += static_cast<unsigned char>(c);
        for (std::size_t i = 0; i < kSize / piece.size(); ++i)
            client.add_body(up, piece, i + 1 == kSize / piece.size());
        co_await client.answer(up);
        co_await client.answer(down);
        EXPECT_EQ(client[up].text,
                  std::to_string(kSize) + " " + std::to_string(sum * (kSize / piece.size())));
        EXPECT_EQ(client[down].received, kSize);
        EXPECT_EQ(client[down].error, NGHTTP2_NO_ERROR);
    });
}

TEST_F(H2Test, AClientThatReadsSlowlyHoldsUpOnlyItself) {
    std::size_t written = 0;
    start([&](Exchange& exchange) -> awaitable<void> {
        if (exchange.target.path != "/slow") {
            co_await exchange.response.send(200, {}, "quick");
            co_return;
        }
        co_await exchange.response.start(200, {});
        const std::string piece(50'000, 's');
        for (int i = 0; i < 100; ++i) {
            if (!co_await exchange.response.write(piece)) co_return;
            written += piece.size();
        }
        co_await exchange.response.finish();
    });
    run_h2(
        [&](H2Client& client) -> awaitable<void> {
            const auto slow = client.request("GET", "/slow");
            client[slow].reading = false;
            co_await client.until([&] { return client[slow].received == 65'535; });
            for (int i = 0; i < 20; ++i) {
                const auto quick = client.request("GET", "/");
                co_await client.answer(quick);
                EXPECT_EQ(client[quick].text, "quick");
            }
            EXPECT_EQ(client[slow].received, 65'535U);
            EXPECT_LE(written, 65'535U);
            client.read_on(slow);
            co_await client.answer(slow);
            EXPECT_EQ(client[slow].received, 5'000'000U);
        },
        65'535);
}

TEST_F(H2Test, AHandlerThatReadsSlowlyHoldsUpOnlyItsClient) {
    bool go = false;
    std::size_t got = 0;
    start([&](Exchange& exchange) -> awaitable<void> {
        if (exchange.target.path != "/slow") {
            co_await exchange.response.send(200, {}, "quick");
            co_return;
        }
        co_await until([&] { return go; });
        auto body = co_await exchange.body.read_all(64 << 20);
        EXPECT_TRUE(body);
        got = body ? body->size() : 0;
        co_await exchange.response.send(200, {}, "");
    });
    run_h2([&](H2Client& client) -> awaitable<void> {
        const auto slow = client.request("POST", "/slow", {}, std::string(8 << 20, 'x'));
        for (int i = 0; i < 20; ++i) {
            const auto quick = client.request("GET", "/");
            co_await client.answer(quick);
            EXPECT_EQ(client[quick].text, "quick");
        }
        EXPECT_EQ(client[slow].sent, 256U * 1024);
        go = true;
        co_await client.answer(slow);
        EXPECT_EQ(client[slow].status, 200);
        EXPECT_EQ(got, std::size_t{8} << 20);
    });
}

TEST_F(H2Test, AResetReachesEveryWaitOfItsHandler) {
    int ended = 0, begun = 0;
    start([&](Exchange& exchange) -> awaitable<void> {
        ++begun;
        if (exchange.target.path == "/ok") {
            co_await exchange.response.send(200, {}, "");
            co_return;
        }
        co_await exchange.response.start(200, {});
        if (exchange.target.path == "/closed") co_await exchange.response.peer_closed();
        if (exchange.target.path == "/body") {
            EXPECT_TRUE(co_await exchange.body.next());
            EXPECT_FALSE(co_await exchange.body.next());
        }
        if (exchange.target.path == "/write") {
            const std::string piece(1 << 20, 'w');
            while (co_await exchange.response.write(piece)) {
            }
        }
        EXPECT_FALSE(co_await exchange.response.write("late"));
        ++ended;
    });
    run_h2([&](H2Client& client) -> awaitable<void> {
        const auto closed = client.request("GET", "/closed");
        const auto body = client.request("POST", "/body", {}, "part", false);
        const auto write = client.request("GET", "/write");
        client[write].reading = false;
        co_await client.until([&] { return begun == 3 && client[write].received > 0; });
        for (auto id : {closed, body, write}) client.reset(id);
        const auto ok = client.request("GET", "/ok");
        co_await client.answer(ok);
        co_await until([&] { return ended == 3; });
        EXPECT_EQ(client[ok].status, 200);
        EXPECT_EQ(server_->connections(), 1U);
    });
}

TEST_F(H2Test, TheEndOfTheConnectionReachesHandlersAndStopCutsIt) {
    int ended = 0;
    start([&](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.peer_closed();
        ++ended;
    });
    run([&]() -> awaitable<void> {
        for (const bool by_client : {true, false}) {
            ended = 0;
            H2Client client(co_await connect("\x02h2"));
            const auto a = client.request("GET", "/"), b = client.request("GET", "/");
            co_await client.until([&] { return client[a].status != 0 && client[b].status != 0; });
            EXPECT_EQ(server_->connections(), 1U);
            if (by_client)
                client.socket().next_layer().close();
            else
                server_->stop();
            co_await until([&] { return ended == 2 && server_->connections() == 0; });
        }
    });
}

TEST_F(H2Test, WhatAHandlerGivesUpIsResetOrA500) {
    start([&](Exchange& exchange) -> awaitable<void> {
        if (exchange.target.path == "/nothing") co_return;
        co_await exchange.response.start(200, {}, 10);
        co_await exchange.response.write("half");
        if (exchange.target.path == "/abort") exchange.response.abort();
        if (exchange.target.path == "/short") co_await exchange.response.finish();
    });
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto nothing = client.request("GET", "/nothing");
        co_await client.answer(nothing);
        EXPECT_EQ(client[nothing].status, 500);
        for (const char* path : {"/abort", "/short", "/left"}) {
            const auto cut = client.request("GET", path);
            co_await client.answer(cut);
            EXPECT_EQ(client[cut].text, "half") << path;
            EXPECT_FALSE(client[cut].ended) << path;
            EXPECT_EQ(client[cut].error, NGHTTP2_INTERNAL_ERROR) << path;
        }
    });
}

TEST_F(H2Test, AnswersWithoutABody) {
    start([](Exchange& exchange) -> awaitable<void> {
        const int status = exchange.head.method == "HEAD" ? 200 : std::stoi(exchange.target.path.substr(1));
        co_await exchange.response.send(status, {}, "text");
    });
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto head = client.request("HEAD", "/"), none = client.request("GET", "/204"),
                   same = client.request("GET", "/304");
        for (auto id : {head, none, same}) {
            co_await client.answer(id);
            EXPECT_EQ(client[id].received, 0U);
            EXPECT_TRUE(client[id].ended);
            EXPECT_EQ(client[id].error, NGHTTP2_NO_ERROR);
        }
        EXPECT_EQ(client[head].headers["content-length"], "4");
        EXPECT_EQ(client[none].status, 204);
        EXPECT_FALSE(client[none].headers.contains("content-length"));
        EXPECT_EQ(client[same].status, 304);
    });
}

TEST_F(H2Test, ExpectContinueIsAnsweredWhenTheBodyIsWanted) {
    start(echo);
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto id = client.request("POST", "/", {{"expect", "100-continue"}}, "", false);
        co_await client.until([&] { return client[id].interim == 100; });
        client.add_body(id, "now", true);
        co_await client.answer(id);
        EXPECT_EQ(client[id].text, "POST/now");
    });
}

TEST_F(H2Test, AnUnwantedBodyIsStoppedAfterTheAnswer) {
    start([](Exchange& exchange) -> awaitable<void> { co_await exchange.response.send_json(413, "{}"); });
    run_h2([](H2Client& client) -> awaitable<void> {
        for (int i = 0; i < 3; ++i) {
            const auto id = client.request("POST", "/", {}, std::string(1 << 20, 'x'), false);
            co_await client.answer(id);
            EXPECT_EQ(client[id].status, 413);
            EXPECT_EQ(client[id].text, "{}");
            EXPECT_TRUE(client[id].ended);
            EXPECT_EQ(client[id].error, NGHTTP2_NO_ERROR);
        }
    });
}

TEST_F(H2Test, TrailersAreIgnored) {
    start(echo);
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto id = client.request("POST", "/t", {}, "body", false);
        co_await client.until([&] { return client[id].sent == 4; });
        std::string name = "x-trailer", value = "1";
        const nghttp2_nv trailer{reinterpret_cast<std::uint8_t*>(name.data()),
                                 reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(), 0};
        nghttp2_submit_trailer(client.session(), id, &trailer, 1);
        client[id].body_ends = true;
        co_await client.answer(id);
        EXPECT_EQ(client[id].text, "POST/tbody");
        EXPECT_EQ(client[id].headers["x-seen"].find("trailer"), std::string::npos);
    });
}

TEST_F(H2Test, AFileIsSentAndOneThatShrankIsCut) {
    const std::string file(3'000'000, 'f');
    ASSERT_TRUE(write_file_atomic(dir_ / "file", file));
    start([&](Exchange& exchange) -> awaitable<void> {
        const std::uint64_t more = exchange.target.path == "/short" ? 1 : 0;
        auto opened = open_file(dir_ / "file", O_RDONLY);
        co_await exchange.response.start(200, {}, file.size() + more);
        EXPECT_EQ((co_await exchange.response.write_file(opened->get(), file.size() + more)).has_value(),
                  more == 0);
        co_await exchange.response.finish();
    });
    run_h2([&](H2Client& client) -> awaitable<void> {
        const auto whole = client.request("GET", "/"), cut = client.request("GET", "/short");
        co_await client.answer(whole);
        co_await client.answer(cut);
        EXPECT_TRUE(client[whole].text == file);
        EXPECT_TRUE(client[whole].ended);
        EXPECT_FALSE(client[cut].ended);
        EXPECT_EQ(client[cut].error, NGHTTP2_INTERNAL_ERROR);
    });
}

TEST_F(H2Test, ThereAreNoUpgrades) {
    start([](Exchange& exchange) -> awaitable<void> {
        std::string early;
        auto stream = co_await exchange.response.upgrade({101, {}}, early);
        EXPECT_FALSE(stream);
        co_await exchange.response.send(stream ? 500 : 200, {}, "");
    });
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto id = client.request("GET", "/");
        co_await client.answer(id);
        EXPECT_EQ(client[id].status, 200);
        EXPECT_EQ(
            nghttp2_session_get_remote_settings(client.session(), NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL),
            0U);
    });
}

TEST_F(H2Test, MalformedRequestsAreReset) {
    int served = 0;
    start([&](Exchange& exchange) -> awaitable<void> {
        ++served;
        co_await exchange.response.send(200, {}, "");
    });
    run_h2([&](H2Client& client) -> awaitable<void> {
        for (const Headers& bad :
             {Headers{{"connection", "close"}}, Headers{{"transfer-encoding", "chunked"}},
              Headers{{"upgrade", "x"}}, Headers{{"host", "other"}}, Headers{{"te", "gzip"}},
              Headers{{"x", "a\nb"}}, Headers{{"x y", "z"}}}) {
            const auto id = client.request("GET", "/", bad);
            co_await client.answer(id);
            EXPECT_EQ(client[id].status, 0) << bad.items()[0].first;
            EXPECT_NE(client[id].error, NGHTTP2_NO_ERROR) << bad.items()[0].first;
        }
        EXPECT_EQ(served, 0);
        // Three bytes were promised.
        const auto liar = client.request("POST", "/", {{"content-length", "3"}}, "four");
        co_await client.answer(liar);
        EXPECT_EQ(client[liar].error, NGHTTP2_PROTOCOL_ERROR);
        const auto good = client.request("GET", "/", {{"host", "host"}});
        co_await client.answer(good);
        EXPECT_EQ(client[good].status, 200);
        const auto target = client.request("GET", "/%zz");
        co_await client.answer(target);
        EXPECT_EQ(client[target].status, 400);
    });
}

TEST_F(H2Test, AHeadThatIsTooLargeIsRefused) {
    start(echo, {.max_header_bytes = 8192});
    run_h2([](H2Client& client) -> awaitable<void> {
        const auto id = client.request("GET", "/", {{"x", std::string(9000, 'x')}});
        co_await client.answer(id);
        EXPECT_EQ(client[id].status, 431);
        const auto good = client.request("GET", "/", {{"x", std::string(7000, 'x')}});
        co_await client.answer(good);
        EXPECT_EQ(client[good].status, 200);
    });
}

TEST_F(H2Test, NoMoreStreamsThanAllowed) {
    std::size_t together = 0, most = 0;
    start(
        [&](Exchange& exchange) -> awaitable<void> {
            most = std::max(most, ++together);
            asio::steady_timer pause(io_, std::chrono::milliseconds(1));
            co_await pause.async_wait(asio::use_awaitable);
            --together;
            co_await exchange.response.send(200, {}, "");
        },
        {.max_concurrent_streams = 4});
    run_h2([&](H2Client& client) -> awaitable<void> {
        co_await client.until([&] {
            return nghttp2_session_get_remote_settings(client.session(),
                                                       NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) == 4;
        });
        std::vector<std::int32_t> ids;
        for (int i = 0; i < 40; ++i) ids.push_back(client.request("GET", "/"));  // it queues them
        for (auto id : ids) {
            co_await client.answer(id);
            EXPECT_EQ(client[id].status, 200);
        }
        EXPECT_LE(most, 4U);
    });
}

TEST_F(H2Test, FloodsEndTheConnection) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.peer_closed();
    });
    run([&]() -> awaitable<void> {
        // Requests that are reset at once, and ones that are malformed.
        for (const bool by_client : {true, false}) {
            H2Client client(co_await connect("\x02h2"));
            co_await client.until([&] {
                return nghttp2_session_get_remote_settings(client.session(),
                                                           NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) == 256;
            });
            for (int i = 0; i < 5000 && !client.goaway() && !client.gone(); ++i) {
                const auto id = client.request("GET", "/", by_client ? Headers{} : Headers{{"te", "x"}});
                co_await client.flush();
                if (by_client) client.reset(id);
                if (i % 50 == 49 || !by_client) {
                    client.ping();
                    bool first = true;  // reads once
                    co_await client.until([&] { return !std::exchange(first, false); });
                }
            }
            // A connection that is closed on a sender may take its last words along.
            co_await client.until([&] { return client.goaway().has_value() || client.gone(); });
            if (client.goaway()) EXPECT_EQ(client.goaway(), NGHTTP2_ENHANCE_YOUR_CALM);
            co_await client.until([&] { return client.gone(); });
        }
        // Questions whose answers are not read.
        H2Client client(co_await connect("\x02h2"));
        co_await client.flush();
        std::string ping("\0\0\x08\x06\0\0\0\0\0........", 17), pings;
        for (int i = 0; i < 1000; ++i) pings += ping;
        boost::system::error_code failed;
        for (int i = 0; i < 100'000 && !failed; ++i) {
            auto [ec, n] = co_await asio::async_write(client.socket(), asio::buffer(pings), kErrorTuple);
            failed = ec;
        }
        EXPECT_TRUE(failed);
        co_await until([&] { return server_->connections() == 0; });
    });
}

TEST_F(H2Test, SilenceEndsTheConnection) {
    start(echo, {.idle_timeout = std::chrono::seconds(1), .header_timeout = std::chrono::seconds(1)});
    run([&]() -> awaitable<void> {
        auto silent = co_await connect("\x02h2");  // not even a preface
        H2Client client(co_await connect("\x02h2"));
        const auto id = client.request("GET", "/");
        co_await client.answer(id);
        EXPECT_EQ(client[id].status, 200);
        co_await client.until([&] { return client.gone(); });
        EXPECT_EQ(client.goaway(), NGHTTP2_NO_ERROR);
        co_await until([&] { return server_->connections() == 0; });
    });
}

TEST_F(H2Test, GarbageBehindTheHandshakeEndsTheConnection) {
    start(echo);
    run([&]() -> awaitable<void> {
        auto client = co_await connect("\x02h2");
        const std::string garbage(1000, 'g');
        co_await asio::async_write(*client, asio::buffer(garbage), asio::use_awaitable);
        co_await until([&] { return server_->connections() == 0; });
    });
}

// The proxy would take the end of a finished exchange for a client that gave up.
TEST_F(H2Test, AFinishedAnswerIsNoClientThatWentAway) {
    bool finished = false;
    start([&](Exchange& exchange) -> awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        co_await exchange.response.send(200, {}, "all");
        auto later = [&]() -> awaitable<void> { co_await until([&] { return finished; }); };
        EXPECT_EQ((co_await (exchange.response.peer_closed() || later())).index(), 1U);
        finished = false;
        co_await exchange.response.peer_closed();
        finished = true;
    });
    run_h2([&](H2Client& client) -> awaitable<void> {
        const auto id = client.request("GET", "/");
        co_await client.answer(id);
        finished = true;
        co_await until([&] { return !finished; });
        client.socket().next_layer().close();
        co_await until([&] { return finished; });
    });
}

// As the proxy does: the first of two waits ends the other, and the exchange goes on.
TEST_F(H2Test, WaitsCanBeCancelled) {
    start([&](Exchange& exchange) -> awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        auto pause = [&]() -> awaitable<void> {
            asio::steady_timer timer(io_, std::chrono::milliseconds(5));
            co_await timer.async_wait(asio::use_awaitable);
        };
        auto read = [&]() -> awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            EXPECT_FALSE(co_await exchange.body.next());
        };
        auto watch = [&]() -> awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            co_await exchange.response.peer_closed();
        };
        EXPECT_EQ((co_await (read() || pause())).index(), 1U);
        EXPECT_EQ((co_await (watch() || pause())).index(), 1U);
        co_await exchange.response.start(200, {});
        auto piece = co_await exchange.body.next();
        EXPECT_TRUE(piece);
        co_await exchange.response.write(*piece);
        const std::string rest(1 << 20, 'r');
        auto write = [&]() -> awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            EXPECT_FALSE(co_await exchange.response.write(rest));
        };
        // Half of it is sent: there is no going on.
        EXPECT_EQ((co_await (write() || pause())).index(), 1U);
        EXPECT_FALSE(co_await exchange.response.write("more"));
    });
    run_h2(
        [](H2Client& client) -> awaitable<void> {
            const auto id = client.request("POST", "/", {}, "", false);
            client[id].reading = false;
            co_await client.until([&] { return client[id].status == 200; });
            client.add_body(id, "body", true);
            co_await client.answer(id);
            EXPECT_EQ(client[id].text.substr(0, 5), "bodyr");
            EXPECT_EQ(client[id].error, NGHTTP2_INTERNAL_ERROR);
        },
        65'535);
}

}  // namespace
}  // namespace gb::http
