#include "http/server.h"

#include <array>
#include <unordered_map>

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "http/parser.h"

namespace gb::http {
namespace {

constexpr std::uint64_t kFilePiece = 1 << 20;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

Error broken(const boost::system::error_code& ec) {
    return {ErrorCode::unavailable, "connection: " + ec.message()};
}

}  // namespace

awaitable<Result<std::string>> BodyReader::read_all(std::size_t limit) {
    std::string out;
    for (;;) {
        GB_CO_TRY_ASSIGN(std::string_view piece, co_await next());
        if (piece.empty()) co_return out;
        if (out.size() + piece.size() > limit)
            co_return fail(ErrorCode::too_large, fmt::format("body is larger than {} bytes", limit));
        out.append(piece);
    }
}

awaitable<Status> ResponseWriter::send_json(int status, std::string_view body) {
    Headers headers;
    headers.add("Content-Type", "application/json");
    co_return co_await send(status, std::move(headers), body);
}

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
    Impl(asio::any_io_executor e, Handler h, ServerOptions o)
        : executor(std::move(e)), handler(std::move(h)), options(o) {}

    asio::any_io_executor executor;
    Handler handler;
    ServerOptions options;
    std::vector<std::shared_ptr<tcp::acceptor>> acceptors;
    std::unordered_map<std::uint64_t, tcp::socket*> open;  // sockets that their connections own
    std::uint64_t next_id = 0;
    bool stopped = false;

    awaitable<void> accept(std::shared_ptr<tcp::acceptor> acceptor);
    awaitable<void> serve(tcp::socket socket);
};

namespace {

// One request on one connection: both interfaces of an exchange over the same socket.
class ExchangeIo final : public BodyReader, public ResponseWriter {
  public:
    ExchangeIo(tcp::socket& socket, std::string& input, detail::MessageParser<true>& parser, bool head_only,
               bool expects_continue, int version)
        : socket_(socket),
          input_(input),
          parser_(parser),
          head_only_(head_only),
          expects_continue_(expects_continue),
          version_(version) {}

    awaitable<Result<std::string_view>> next() override {
        if (expects_continue_ && !started_) {
            expects_continue_ = false;
            GB_CO_TRY(co_await raw("HTTP/1.1 100 Continue\r\n\r\n"));
        }
        for (;;) {
            GB_CO_TRY_ASSIGN(std::string_view piece, parser_.parse_body(input_));
            if (!piece.empty() || parser_.done()) co_return piece;
            const std::span<char> room = parser_.body_room(input_);
            auto [ec, n] = co_await socket_.async_read_some(
                room.empty() ? asio::buffer(chunk_) : asio::buffer(room.data(), room.size()), kToken);
            if (ec == asio::error::eof) {
                parser_.set_eof();
                continue;
            }
            if (ec) co_return std::unexpected(broken(ec));
            if (!room.empty()) co_return parser_.took(n);
            input_.append(chunk_.data(), n);
        }
    }

    awaitable<Status> send(int status, Headers headers, std::string_view body) override {
        GB_CO_TRY_ASSIGN(std::string head, open_head(status, std::move(headers), body.size()));
        finished_ = true;
        if (head_only_ || bodiless(status)) co_return co_await raw(head);
        if (body.size() < 16384) {
            head.append(body);
            co_return co_await raw(head);
        }
        std::array<asio::const_buffer, 2> both{asio::buffer(head), asio::buffer(body.data(), body.size())};
        auto [ec, n] = co_await asio::async_write(socket_, both, kToken);
        if (ec) co_return std::unexpected(fail_write(ec));
        co_return Status{};
    }

    awaitable<Status> start(int status, Headers headers, std::optional<std::uint64_t> length) override {
        GB_CO_TRY_ASSIGN(std::string head, open_head(status, std::move(headers), length));
        left_ = length;
        if (bodiless(status)) left_ = 0;
        co_return co_await raw(head);
    }

    awaitable<Status> write(std::string_view piece) override {
        if (!started_ || finished_) co_return fail(ErrorCode::internal, "body written outside of an answer");
        if (piece.empty() || head_only_) co_return Status{};
        if (left_) {
            if (piece.size() > *left_) co_return fail(ErrorCode::internal, "answer is longer than announced");
            *left_ -= piece.size();
            co_return co_await raw(piece);
        }
        if (version_ < 11)
            co_return co_await raw(piece);  // HTTP/1.0: the end of the connection ends the body
        std::string size = fmt::format("{:x}\r\n", piece.size());
        std::array<asio::const_buffer, 3> parts{asio::buffer(size), asio::buffer(piece.data(), piece.size()),
                                                asio::buffer("\r\n", 2)};
        auto [ec, n] = co_await asio::async_write(socket_, parts, kToken);
        if (ec) co_return std::unexpected(fail_write(ec));
        co_return Status{};
    }

    awaitable<Status> write_file(int fd, std::uint64_t length) override {
        if (!started_ || finished_ || !left_ || length > *left_)
            co_return fail(ErrorCode::internal, "a file needs an answer of known length");
        if (head_only_) co_return Status{};
        boost::system::error_code ignored;
        socket_.native_non_blocking(true, ignored);
        while (length > 0) {
            const ssize_t n =
                ::sendfile(socket_.native_handle(), fd, nullptr,
                           static_cast<std::size_t>(std::min<std::uint64_t>(length, kFilePiece)));
            if (n > 0) {
                length -= static_cast<std::uint64_t>(n);
                *left_ -= static_cast<std::uint64_t>(n);
                // A client that is as fast as the disk must not keep the loop to itself.
                co_await asio::post(socket_.get_executor(), asio::use_awaitable);
            } else if (n < 0 && errno == EAGAIN) {
                auto [ec] = co_await socket_.async_wait(tcp::socket::wait_write, kToken);
                if (ec) co_return std::unexpected(fail_write(ec));
            } else if (n == 0 || errno != EINTR) {
                // Its head has promised more: cut, so that nobody takes this for whole.
                abort();
                if (n == 0) co_return fail(ErrorCode::aborted, "the file has become shorter");
                co_return fail_errno("send a file");
            }
        }
        co_return Status{};
    }

    awaitable<Status> finish() override {
        if (!started_ || finished_) co_return Status{};
        finished_ = true;
        if (head_only_) co_return Status{};
        if (left_) {
            if (*left_ > 0) abort();
            co_return Status{};
        }
        if (version_ < 11) {
            broken_ = true;
            co_return Status{};
        }
        co_return co_await raw("0\r\n\r\n");
    }

    awaitable<Result<tcp::socket>> upgrade(ResponseHead head, std::string& early) override {
        if (started_) co_return fail(ErrorCode::internal, "upgrade after an answer was started");
        started_ = finished_ = upgraded_ = true;
        GB_CO_TRY(co_await raw(write_head(head)));
        early = std::move(input_);
        input_.clear();
        co_return std::move(socket_);
    }

    [[nodiscard]] bool started() const override { return started_; }

    awaitable<void> peer_closed() override {
        asio::steady_timer pause(socket_.get_executor());
        for (;;) {
            auto [ec] = co_await socket_.async_wait(tcp::socket::wait_read, kToken);
            if (ec) co_return;
            char c = 0;
            ssize_t n = ::recv(socket_.native_handle(), &c, 1, MSG_PEEK | MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) co_return;
            // The next request is waiting already: readable says nothing more, so look again now and then.
            pause.expires_after(std::chrono::milliseconds(500));
            auto [timer_ec] = co_await pause.async_wait(kToken);
            if (timer_ec) co_return;
        }
    }

    void abort() override { broken_ = true; }

    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] bool upgraded() const { return upgraded_; }
    [[nodiscard]] bool must_close() const { return broken_; }
    void close_after() { broken_ = true; }

  private:
    static bool bodiless(int status) { return status == 204 || status == 304 || status / 100 == 1; }

    Result<std::string> open_head(int status, Headers headers, std::optional<std::uint64_t> length) {
        if (started_) return fail(ErrorCode::internal, "second answer to one request");
        started_ = true;
        // The client was not told to send its body and may never do so: what comes next could be either.
        if (expects_continue_ && !parser_.done()) broken_ = true;
        if (!bodiless(status)) {
            if (length)
                headers.set("Content-Length", std::to_string(*length));
            else if (version_ >= 11)
                headers.set("Transfer-Encoding", "chunked");
        }
        if (!parser_.keep_alive() || broken_ || (version_ < 11 && !length)) {
            headers.set("Connection", "close");
            if (version_ < 11 && !length) broken_ = true;
        } else if (version_ < 11) {
            headers.set("Connection", "keep-alive");
        }
        return write_head(ResponseHead{status, std::move(headers)});
    }

    Error fail_write(const boost::system::error_code& ec) {
        broken_ = true;
        return broken(ec);
    }

    awaitable<Status> raw(std::string_view bytes) {
        auto [ec, n] = co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), kToken);
        if (ec) co_return std::unexpected(fail_write(ec));
        co_return Status{};
    }

    tcp::socket& socket_;
    std::string& input_;
    detail::MessageParser<true>& parser_;
    bool head_only_;
    bool expects_continue_;
    int version_;
    bool started_ = false, finished_ = false, upgraded_ = false, broken_ = false;
    std::optional<std::uint64_t> left_;
    std::array<char, 65536> chunk_;
};

std::string error_json(int status, std::string_view message) {
    return fmt::format(R"({{"code":{},"message":{}}})", status, log::json_quote(message));
}

// A body that the handler left unread stands between this request and the next one. Short ones are read away.
awaitable<bool> drain(ExchangeIo& io) {
    std::size_t total = 0;
    for (;;) {
        auto piece = co_await io.next();
        if (!piece) co_return false;
        if (piece->empty()) co_return true;
        total += piece->size();
        if (total > 256 * 1024) co_return false;
    }
}

// Closing with unread input makes the kernel reset the connection, and the answer may be lost with it.
awaitable<void> linger(std::shared_ptr<tcp::socket> socket) {
    boost::system::error_code ignored;
    socket->shutdown(tcp::socket::shutdown_send, ignored);
    asio::steady_timer limit(socket->get_executor());
    limit.expires_after(std::chrono::milliseconds(500));
    limit.async_wait([socket](const boost::system::error_code& ec) {
        boost::system::error_code none;
        if (!ec) socket->cancel(none);
    });
    std::array<char, 16384> sink;
    for (int i = 0; i < 64; ++i) {
        auto [ec, n] = co_await socket->async_read_some(asio::buffer(sink), kToken);
        if (ec) break;
    }
    limit.cancel();
}

}  // namespace

awaitable<void> Server::Impl::serve(tcp::socket accepted) {
    auto self = shared_from_this();
    // Shared with the timers' handlers, which may be queued already when this frame ends.
    auto connection = std::make_shared<tcp::socket>(std::move(accepted));
    tcp::socket& socket = *connection;
    const std::uint64_t id = next_id++;
    open.emplace(id, &socket);
    struct Forget {
        Impl& impl;
        std::uint64_t id;
        ~Forget() { impl.open.erase(id); }
    } forget{*this, id};

    boost::system::error_code ec;
    socket.set_option(tcp::no_delay(true), ec);
    const tcp::endpoint peer = socket.remote_endpoint(ec);
    std::string input;
    auto chunk = std::make_unique_for_overwrite<std::array<char, 65536>>();
    asio::steady_timer timer(executor);
    auto limit = [&](std::chrono::seconds time) {
        timer.expires_after(time);
        timer.async_wait([connection](const boost::system::error_code& timer_ec) {
            boost::system::error_code none;
            if (!timer_ec) connection->close(none);
        });
    };
    bool close = false;
    while (!close && !stopped) {
        auto parser = std::make_unique<detail::MessageParser<true>>(options.max_header_bytes);
        bool head_begun = !input.empty();
        limit(head_begun ? options.header_timeout : options.idle_timeout);
        Result<bool> head = parser->parse_head(input);
        while (head && !*head) {
            auto [read_ec, n] = co_await socket.async_read_some(asio::buffer(*chunk), kToken);
            if (read_ec) co_return;
            if (!head_begun) limit(options.header_timeout);  // once: a head that drips in gets no more time
            head_begun = true;
            input.append(chunk->data(), n);
            head = parser->parse_head(input);
        }
        timer.cancel();
        // RFC 9112 6.3: a body framed in a way that we do not know has no end that we could find.
        if (head && parser->unknown_framing())
            head = fail(ErrorCode::invalid_argument, "unknown Transfer-Encoding");
        if (!head) {
            int status = head.error().code == ErrorCode::too_large ? 431 : 400;
            std::string body = error_json(status, head.error().message);
            std::string text = write_head(ResponseHead{status,
                                                       {{"Content-Type", "application/json"},
                                                        {"Content-Length", std::to_string(body.size())},
                                                        {"Connection", "close"}}}) +
                               body;
            co_await asio::async_write(socket, asio::buffer(text), kToken);
            co_await linger(connection);
            co_return;
        }
        const auto& message = parser->message();
        RequestHead request;
        request.method = std::string(message.method_string().data(), message.method_string().size());
        request.target = std::string(message.target().data(), message.target().size());
        request.headers = parser->headers();
        const int version = static_cast<int>(message.version());
        auto io =
            std::make_unique<ExchangeIo>(socket, input, *parser, request.method == "HEAD",
                                         iequals(request.headers.get("Expect"), "100-continue"), version);
        auto target = parse_target(request.target);
        if (!target) {
            co_await io->send_json(400, error_json(400, target.error().message));
        } else {
            Exchange exchange{std::move(request), *std::move(target), peer, *io, *io};
            co_await handler(exchange);
        }
        if (io->upgraded()) co_return;
        if (!io->started()) co_await io->send_json(500, error_json(500, "the request was not answered"));
        if (!io->finished())
            io->close_after();  // a stream that its handler gave up: cut, so that the client knows
        close = io->must_close() || !parser->keep_alive();
        if (!parser->done()) {
            limit(options.header_timeout);
            if (io->must_close() || !co_await drain(*io)) {
                if (io->finished()) co_await linger(connection);
                close = true;
            }
            timer.cancel();
        }
    }
}

awaitable<void> Server::Impl::accept(std::shared_ptr<tcp::acceptor> acceptor) {
    auto self = shared_from_this();
    asio::steady_timer pause(executor);
    while (!stopped) {
        auto [ec, socket] = co_await acceptor->async_accept(executor, kToken);
        if (ec == asio::error::operation_aborted || stopped) co_return;
        if (ec) {
            // Out of descriptors or memory: waiting helps, giving up would leave a server that looks alive.
            log::warn("accept failed", {{"error", ec.message()}});
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(kToken);
            continue;
        }
        if (open.size() >= options.max_connections) continue;
        asio::co_spawn(executor, serve(std::move(socket)), [](const std::exception_ptr& failure) {
            if (failure) std::rethrow_exception(failure);
        });
    }
}

Server::Server(asio::any_io_executor executor, Handler handler, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(handler), options)) {}

Server::~Server() {
    stop();
}

Result<tcp::endpoint> Server::listen(const tcp::endpoint& where) {
    auto acceptor = std::make_shared<tcp::acceptor>(impl_->executor);
    boost::system::error_code ec;
    auto failed = [&](std::string_view what) -> std::unexpected<Error> {
        return fail(
            ec == boost::system::errc::address_in_use ? ErrorCode::already_exists : ErrorCode::unavailable,
            fmt::format("{} {}:{}: {}", what, where.address().to_string(), where.port(), ec.message()));
    };
    if (acceptor->open(where.protocol(), ec); ec) return failed("open");
    if (acceptor->set_option(tcp::acceptor::reuse_address(true), ec); ec) return failed("set up");
    if (acceptor->bind(where, ec); ec) return failed("bind");
    if (acceptor->listen(4096, ec); ec) return failed("listen on");
    impl_->acceptors.push_back(acceptor);
    asio::co_spawn(impl_->executor, impl_->accept(acceptor), asio::detached);
    return acceptor->local_endpoint(ec);
}

std::size_t Server::connections() const {
    return impl_->open.size();
}

void Server::stop() {
    if (impl_->stopped) return;
    impl_->stopped = true;
    boost::system::error_code ignored;
    for (auto& acceptor : impl_->acceptors) acceptor->close(ignored);
    for (auto& [id, socket] : impl_->open) {
        socket->shutdown(tcp::socket::shutdown_both, ignored);
        socket->cancel(ignored);
    }
}

}  // namespace gb::http
