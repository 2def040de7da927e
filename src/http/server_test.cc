// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/error_tuple.h"
#include "http/client.h"

namespace gb::http {
namespace {

// A server and a client on one io_context, run in the test's thread.
class ServerTest : public ::testing::Test {
  protected:
    void start(Handler handler, ServerOptions options = {}) {
        server_ = std::make_unique<Server>(io_.get_executor(), std::move(handler), options);
        auto where = server_->listen({asio::ip::make_address("127.0.0.1"), 0});
        ASSERT_TRUE(where);
        endpoint_ = *where;
    }

    void run(std::function<awaitable<void>()> client) {
        bool done = false;
        asio::co_spawn(io_, client(), [&](const std::exception_ptr& failure) {
            done = true;
            server_->stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done) << "the client did not finish";
    }

    awaitable<ClientConnection> connect() {
        auto connection = co_await ClientConnection::connect(endpoint_, std::chrono::seconds(5));
        if (!connection) throw std::runtime_error(connection.error().message);
        co_return *std::move(connection);
    }

    // Sends bytes as they are and returns all that comes back until the server closes.
    awaitable<std::string> raw(std::string bytes) {
        ClientConnection connection = co_await connect();
        co_await asio::async_write(connection.socket(), asio::buffer(bytes), asio::use_awaitable);
        std::string answer;
        [[maybe_unused]] auto [ec, n] = co_await asio::async_read(connection.socket(), asio::dynamic_buffer(answer),
                                                 kErrorTuple);
        co_return answer;
    }

    asio::io_context io_;
    std::unique_ptr<Server> server_;
    tcp::endpoint endpoint_;
};

awaitable<void> echo(Exchange& exchange) {
    auto body = co_await exchange.body.read_all(64 << 20);
    if (!body) co_return;
    co_await exchange.response.send(200, {{"X-Path", exchange.target.path}}, *body);
}

TEST_F(ServerTest, KeepAliveCarriesRequestsOneAfterAnother) {
    start(echo);
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        for (int i = 0; i < 3; ++i) {
            auto response = co_await connection.request({"POST", "/p" + std::to_string(i), {}}, "body");
            EXPECT_TRUE(response);
            EXPECT_EQ(response->head.headers.get("x-path"), "/p" + std::to_string(i));
            EXPECT_EQ(response->body, "body");
            EXPECT_TRUE(connection.reusable());
        }
    });
}

TEST_F(ServerTest, LargeChunkedBodyBothWays) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        for (;;) {
            auto piece = co_await exchange.body.next();
            if (!piece || piece->empty()) break;
            co_await exchange.response.write(*piece);
        }
        co_await exchange.response.finish();
    });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        std::string sent(3 << 20, 'a');
        for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
        RequestHead head{"POST", "/", {}};
        co_await connection.start(std::move(head), std::nullopt);
        asio::co_spawn(
            co_await asio::this_coro::executor,
            [&]() -> awaitable<void> {
                for (std::size_t at = 0; at < sent.size(); at += 100'000)
                    co_await connection.write(std::string_view(sent).substr(at, 100'000));
                co_await connection.finish();
            },
            asio::detached);
        auto answer = co_await connection.read_head();
        EXPECT_TRUE(answer);
        auto body = co_await connection.read_all(64 << 20);
        EXPECT_TRUE(body);
        EXPECT_TRUE(*body == sent);
    });
}

TEST_F(ServerTest, FirstPieceOfAStreamPassesAtOnce) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.write("first");
        co_await exchange.response.peer_closed();
    });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        co_await connection.start({"GET", "/", {}}, 0);
        co_await connection.read_head();
        auto piece = co_await connection.next();
        EXPECT_TRUE(piece);
        EXPECT_EQ(*piece, "first");
    });
}

// A connection on which one request comes, and which notes what is written at once.
class NotedStream final : public Stream {
  public:
    NotedStream(const asio::any_io_executor& executor, std::string request)
        : socket_(executor), request_(std::move(request)) {}
    Io read_some(asio::mutable_buffer room) override {
        const std::size_t n = asio::buffer_copy(room, asio::buffer(request_));
        request_.erase(0, n);
        co_return std::tuple(n > 0 ? boost::system::error_code() : asio::error::eof, n);
    }
    Io write(asio::const_buffer bytes) override { return write(std::span(&bytes, 1)); }
    Io write(std::span<const asio::const_buffer> pieces) override {
        std::string& all = writes.emplace_back();
        for (const asio::const_buffer& piece : pieces) all.append(static_cast<const char*>(piece.data()), piece.size());
        return done(all.size());
    }
    awaitable<void> shutdown_send() override { co_return; }
    void close() override {}
    [[nodiscard]] bool quiet() override { return true; }
    tcp::socket& socket() override { return socket_; }
    [[nodiscard]] bool plain() const override { return true; }

    std::vector<std::string> writes;

  private:
    static Io done(std::size_t n) { co_return std::tuple(boost::system::error_code(), n); }

    tcp::socket socket_;
    std::string request_;
};

TEST_F(ServerTest, AShortStreamIsAsManyWritesAsItHasMoments) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start_with(200, {}, "first");
        co_await exchange.response.finish_with("last");
    });
    const auto answer = [&](const std::string& request) {
        auto stream = std::make_shared<NotedStream>(io_.get_executor(), request);
        asio::co_spawn(io_, server_->serve(stream, {}), asio::detached);
        io_.poll();
        io_.restart();
        return stream->writes;
    };
    const auto chunked = answer("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_EQ(chunked.size(), 2U);
    EXPECT_TRUE(chunked[0].ends_with("\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")) << chunked[0];
    EXPECT_EQ(chunked[1], "4\r\nlast\r\n0\r\n\r\n");
    const auto plain = answer("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    ASSERT_EQ(plain.size(), 2U);
    EXPECT_TRUE(plain[0].ends_with("\r\nConnection: close\r\n\r\nfirst")) << plain[0];
    EXPECT_EQ(plain[1], "last");
    const auto head = answer("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_EQ(head.size(), 1U);
    EXPECT_TRUE(head[0].ends_with("\r\n\r\n")) << head[0];
}

TEST_F(ServerTest, ExpectContinueIsAnsweredWhenTheBodyIsWanted) {
    start(echo);
    run([&]() -> awaitable<void> {
        std::string answer = co_await raw(
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")) << answer;
    });
}

TEST_F(ServerTest, ABodyThatWasNotAskedForEndsTheConnection) {
    start([](Exchange& exchange) -> awaitable<void> { co_await exchange.response.send_json(401, "{}"); });
    run([&]() -> awaitable<void> {
        std::string answer = co_await raw(
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 20\r\n\r\n");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << answer;
        EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
    });
}

TEST_F(ServerTest, AHeadThatDripsInIsCutOff) {
    start(echo, {.header_timeout = std::chrono::seconds(1)});
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        asio::steady_timer pause(io_);
        boost::system::error_code failed;
        for (int i = 0; i < 20 && !failed; ++i) {
            auto [ec, n] = co_await asio::async_write(connection.socket(), asio::buffer("G", 1),
                                                      kErrorTuple);
            failed = ec;
            pause.expires_after(std::chrono::milliseconds(200));
            co_await pause.async_wait(asio::use_awaitable);
        }
        EXPECT_TRUE(failed) << "the server waited for as long as something came";
    });
}

TEST_F(ServerTest, MalformedRequestsGetAJson400AndAClose) {
    start(echo);
    run([&]() -> awaitable<void> {
        for (std::string bad : {"GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n",
                                "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                                "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nx",
                                "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
            std::string answer = co_await raw(bad);
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << bad << " -> " << answer;
            EXPECT_NE(answer.find(R"({"code":400,"message":)"), std::string::npos) << answer;
        }
    });
}

TEST_F(ServerTest, AHeadThatIsTooLargeIsRefused) {
    start(echo, {.max_header_bytes = 4096});
    run([&]() -> awaitable<void> {
        std::string answer = co_await raw("GET / HTTP/1.1\r\nX: " + std::string(8000, 'x') + "\r\n\r\n");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 431")) << answer.substr(0, 80);
    });
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
    start(echo);
    run([&]() -> awaitable<void> {
        std::string answer = co_await raw(
            "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        std::size_t a = answer.find("X-Path: /a"), b = answer.find("X-Path: /b");
        EXPECT_NE(a, std::string::npos);
        EXPECT_NE(b, std::string::npos);
        EXPECT_LT(a, b);
    });
}

TEST_F(ServerTest, AnUnreadBodyDoesNotBreakTheNextRequest) {
    start([](Exchange& exchange) -> awaitable<void> { co_await exchange.response.send_json(200, "{}"); });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        for (int i = 0; i < 3; ++i) {
            auto response = co_await connection.request({"POST", "/", {}}, std::string(100'000, 'z'));
            EXPECT_TRUE(response);
            EXPECT_EQ(response->body, "{}");
        }
    });
}

TEST_F(ServerTest, AHandlerThatAnswersNothingGivesA500) {
    start([](Exchange&) -> awaitable<void> { co_return; });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        auto response = co_await connection.request({"GET", "/", {}}, "");
        EXPECT_TRUE(response);
        EXPECT_EQ(response->head.status, 500);
    });
}

TEST_F(ServerTest, AnUnfinishedStreamIsCutSoThatTheClientNotices) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.write("half");
    });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        co_await connection.start({"GET", "/", {}}, 0);
        co_await connection.read_head();
        auto body = co_await connection.read_all(1000);
        EXPECT_FALSE(body);
    });
}

TEST_F(ServerTest, HeadAnd204CarryNoBody) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.send(exchange.target.path == "/none" ? 204 : 200, {}, "text");
    });
    run([&]() -> awaitable<void> {
        ClientConnection connection = co_await connect();
        auto head = co_await connection.request({"HEAD", "/", {}}, "");
        EXPECT_TRUE(head);
        EXPECT_EQ(head->head.headers.get("content-length"), "4");
        EXPECT_EQ(head->body, "");
        auto none = co_await connection.request({"GET", "/none", {}}, "");
        EXPECT_TRUE(none);
        EXPECT_EQ(none->head.status, 204);
        EXPECT_TRUE(connection.reusable());
    });
}

TEST_F(ServerTest, UpgradeHandsOverTheSocketAndEarlyBytes) {
    start([](Exchange& exchange) -> awaitable<void> {
        std::string early;
        auto socket = co_await exchange.response.upgrade({101, {{"Upgrade", "x"}, {"Connection", "Upgrade"}}}, early);
        if (!socket) co_return;
        std::string reply = "got " + early;
        co_await (*socket)->write(asio::buffer(reply));
    });
    run([&]() -> awaitable<void> {
        std::string answer =
            co_await raw("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 101")) << answer;
        EXPECT_TRUE(answer.ends_with("got early")) << answer;
    });
}

TEST_F(ServerTest, PeerClosedCompletesWhenTheClientGoesAway) {
    bool noticed = false;
    start([&](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.start(200, {});
        co_await exchange.response.peer_closed();
        noticed = true;
    });
    run([&]() -> awaitable<void> {
        {
            ClientConnection connection = co_await connect();
            co_await connection.start({"GET", "/", {}}, 0);
            co_await connection.read_head();
        }
        asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(200));
        co_await timer.async_wait(asio::use_awaitable);
        EXPECT_TRUE(noticed);
    });
}

TEST_F(ServerTest, APortThatIsTakenIsOneClearError) {
    start(echo);
    Server second(io_.get_executor(), echo);
    auto where = second.listen(endpoint_);
    ASSERT_FALSE(where);
    EXPECT_EQ(where.error().code, ErrorCode::already_exists);
    EXPECT_NE(where.error().message.find(std::to_string(endpoint_.port())), std::string::npos);
}

TEST_F(ServerTest, AConnectionWithAnUnfinishedRequestIsNotUsedAgain) {
    start([](Exchange& exchange) -> awaitable<void> { co_await exchange.response.send(200, {}, "early"); });
    run([&]() -> awaitable<void> {
        for (const std::optional<std::uint64_t> length : {std::optional<std::uint64_t>(4), {}}) {
            ClientConnection connection = co_await connect();
            EXPECT_TRUE(co_await connection.start({"POST", "/", {{"Host", "x"}}}, length));
            EXPECT_TRUE(co_await connection.write("12"));
            EXPECT_TRUE(co_await connection.read_head());
            EXPECT_EQ((co_await connection.read_all(100)).value_or(""), "early");
            EXPECT_FALSE(connection.reusable()) << "the server waits for the rest";
            EXPECT_TRUE(co_await connection.write("34"));
            EXPECT_TRUE(co_await connection.finish());
            EXPECT_TRUE(connection.reusable());
            EXPECT_EQ((co_await connection.write("5")).has_value(), !length) << "more than was announced";
        }
    });
}

TEST_F(ServerTest, AnAnswerCanEndItsConnection) {
    start([](Exchange& exchange) -> awaitable<void> {
        co_await exchange.response.send(403, {{"Connection", "close"}}, "no");
    });
    run([&]() -> awaitable<void> {
        const std::string answer = co_await raw("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 403"));
        EXPECT_TRUE(answer.ends_with("no"));
        EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
    });
}

TEST_F(ServerTest, ARelayReadsHeadsStrictlyAndTargetsNotAtAll) {
    ServerOptions options;
    options.relaying = true;
    start(
        [](Exchange& exchange) -> awaitable<void> {
            EXPECT_EQ(exchange.target.path, "");
            co_await exchange.response.send(200, {}, exchange.head.target + std::to_string(exchange.version));
        },
        options);
    run([&]() -> awaitable<void> {
        EXPECT_TRUE((co_await raw("GET /%zz/../a HTTP/1.0\r\n\r\n")).ends_with("/%zz/../a10"));
        const std::string folded = co_await raw("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n");
        EXPECT_TRUE(folded.starts_with("HTTP/1.1 400")) << folded;
        const std::string bare = co_await raw("GET / HTTP/1.1\nHost: a\n\n");
        EXPECT_TRUE(bare.starts_with("HTTP/1.1 400")) << bare;
    });
}

TEST_F(ServerTest, AStrictClientTakesNoDoubtfulAnswer) {
    run([&]() -> awaitable<void> {
        for (const std::string& fields :
             {std::string("Content-Length: 1\r\nContent-Length: 1\r\n"), std::string("X: a\r\n b\r\n"),
              std::string("Transfer-Encoding: gzip\r\n"), std::string("Content-Length: 1\nX: y\r\n")}) {
            tcp::acceptor acceptor(io_, {asio::ip::make_address("127.0.0.1"), 0});
            tcp::socket near(io_), far(io_);
            co_await near.async_connect(acceptor.local_endpoint(), asio::use_awaitable);
            acceptor.accept(far);
            const std::string answer = "HTTP/1.1 200 OK\r\n" + fields + "\r\nx";
            far.send(asio::buffer(answer));
            ClientConnection connection(std::make_shared<TcpStream>(std::move(near)), {.strict = true});
            EXPECT_TRUE(co_await connection.start({"GET", "/", {{"Host", "x"}}}, 0));
            auto head = co_await connection.read_head();
            EXPECT_FALSE(head) << fields;
            EXPECT_FALSE(connection.reusable());
        }
        server_ = std::make_unique<Server>(io_.get_executor(), echo);
    });
}

}  // namespace
}  // namespace gb::http
