// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <array>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"
#include "http/head_check.h"
#include "http/parser.h"

namespace gb::http {
namespace {

constexpr int kMostInterim = 32;  // 1xx before the answer itself

Error broken(const boost::system::error_code& ec) {
    return {ErrorCode::unavailable, "connection: " + ec.message()};
}

}  // namespace

struct ClientConnection::Impl {
    Impl(std::shared_ptr<Stream> s, ClientOptions o) : stream(std::move(s)), options(o) {}

    std::shared_ptr<Stream> stream;
    ClientOptions options;
    std::string input;
    std::unique_ptr<detail::MessageParser<false>> parser;
    bool chunked = false;
    // Of the request's body: what was promised and not sent yet. With something left the server would take the
    // next request for the rest.
    std::uint64_t owed = 0;
    bool unfinished = false;  // a chunked one without its end
    bool head_request = false;
    bool failed = false;
    bool heard = false;
    bool upgraded = false;
    std::array<char, 65536> chunk{};

    awaitable<Status> raw(std::string_view bytes) {
        auto [ec, n] = co_await stream->write(asio::buffer(bytes.data(), bytes.size()));
        if (ec) {
            failed = true;
            co_return std::unexpected(broken(ec));
        }
        co_return Status{};
    }

    // 0 at the end of the connection.
    awaitable<Result<std::size_t>> read(asio::mutable_buffer room) {
        auto [ec, n] = co_await stream->read_some(room);
        if (ec == asio::error::eof) co_return std::size_t{0};
        if (ec) {
            failed = true;
            co_return std::unexpected(broken(ec));
        }
        heard = heard || n > 0;
        co_return n;
    }

    // False at the end of the connection.
    awaitable<Result<bool>> fill() {
        GB_CO_TRY_ASSIGN(const std::size_t n, co_await read(asio::buffer(chunk)));
        input.append(chunk.data(), n);
        co_return n > 0;
    }
};

ClientConnection::ClientConnection(tcp::socket socket)
    : ClientConnection(std::make_shared<TcpStream>(std::move(socket))) {}
ClientConnection::ClientConnection(std::shared_ptr<Stream> stream, ClientOptions options)
    : impl_(std::make_unique<Impl>(std::move(stream), options)) {
    boost::system::error_code ignored;
    socket().set_option(tcp::no_delay(true), ignored);
}
ClientConnection::~ClientConnection() = default;
ClientConnection::ClientConnection(ClientConnection&&) noexcept = default;
ClientConnection& ClientConnection::operator=(ClientConnection&&) noexcept = default;

awaitable<Result<ClientConnection>> ClientConnection::connect(tcp::endpoint to,
                                                              std::chrono::milliseconds timeout) {
    auto executor = co_await asio::this_coro::executor;
    // Shared with the timer's handler, which may be queued already when this frame ends.
    struct Attempt {
        tcp::socket socket;
        bool timed_out = false;
    };
    auto attempt = std::make_shared<Attempt>(tcp::socket(executor));
    asio::steady_timer timer(executor, timeout);
    timer.async_wait([attempt](const boost::system::error_code& ec) {
        if (ec) return;
        attempt->timed_out = true;
        boost::system::error_code ignored;
        attempt->socket.close(ignored);
    });
    auto [ec] = co_await attempt->socket.async_connect(to, kErrorTuple);
    timer.cancel();
    if (attempt->timed_out)
        co_return fail(ErrorCode::deadline_exceeded,
                       fmt::format("no connection to {}:{} within {} ms", to.address().to_string(), to.port(),
                                   timeout.count()));
    if (ec)
        co_return fail(ErrorCode::unavailable, fmt::format("connect to {}:{}: {}", to.address().to_string(),
                                                           to.port(), ec.message()));
    co_return ClientConnection(std::move(attempt->socket));
}

awaitable<Status> ClientConnection::start(RequestHead head, std::optional<std::uint64_t> length) {
    Impl& impl = *impl_;
    impl.chunked = !length;
    impl.heard = false;
    impl.head_request = head.method == "HEAD";
    impl.parser.reset();
    impl.owed = length.value_or(0);
    impl.unfinished = !length;
    if (!length)
        head.headers.set("Transfer-Encoding", "chunked");
    else if (*length > 0 || (head.method != "GET" && head.method != "HEAD" && head.method != "DELETE"))
        head.headers.set("Content-Length", std::to_string(*length));
    co_return co_await impl.raw(write_head(head));
}

awaitable<Status> ClientConnection::write(std::string_view piece) {
    Impl& impl = *impl_;
    if (piece.empty()) co_return Status{};
    if (!impl.chunked) {
        if (piece.size() > impl.owed) {
            impl.failed = true;
            co_return fail(ErrorCode::internal, "request is longer than announced");
        }
        GB_CO_TRY(co_await impl.raw(piece));
        impl.owed -= piece.size();
        co_return Status{};
    }
    std::string size = fmt::format("{:x}\r\n", piece.size());
    std::array<asio::const_buffer, 3> parts{asio::buffer(size), asio::buffer(piece.data(), piece.size()),
                                            asio::buffer("\r\n", 2)};
    auto [ec, n] = co_await impl.stream->write(parts);
    if (ec) {
        impl.failed = true;
        co_return std::unexpected(broken(ec));
    }
    co_return Status{};
}

awaitable<Status> ClientConnection::finish() {
    if (!impl_->chunked) co_return Status{};
    GB_CO_TRY(co_await impl_->raw("0\r\n\r\n"));
    impl_->unfinished = false;
    co_return Status{};
}

awaitable<Result<ResponseHead>> ClientConnection::read_head() {
    Impl& impl = *impl_;
    for (int interim = 0;; ++interim) {
        if (interim > kMostInterim) {
            impl.failed = true;
            co_return fail(ErrorCode::unavailable, "too many interim answers");
        }
        impl.parser = std::make_unique<detail::MessageParser<false>>(impl.options.max_head_bytes);
        if (impl.head_request) impl.parser->skip_body();
        HeadCheck check(HeadCheck::Kind::answer);
        for (;;) {
            // The parser would take a part that it understands away from the check: only a whole head is its.
            Result<bool> head = true;
            if (impl.options.strict) head = check.look(impl.input, impl.options.max_head_bytes);
            if (head && *head) head = impl.parser->parse_head(impl.input);
            if (!head) {
                impl.failed = true;
                co_return std::unexpected(head.error());
            }
            if (*head) break;
            GB_CO_TRY_ASSIGN(bool more, co_await impl.fill());
            if (!more) {
                impl.failed = true;
                co_return fail(ErrorCode::unavailable, "connection closed before an answer");
            }
        }
        int status = static_cast<int>(impl.parser->message().result_int());
        if (status / 100 == 1 && status != 101) continue;
        impl.upgraded = status == 101;
        co_return ResponseHead{status, impl.parser->headers()};
    }
}

awaitable<Result<std::string_view>> ClientConnection::next() {
    Impl& impl = *impl_;
    if (!impl.parser) co_return fail(ErrorCode::internal, "body read before the head");
    for (;;) {
        auto piece = impl.parser->parse_body(impl.input);
        if (!piece) {
            impl.failed = true;
            co_return std::unexpected(piece.error());
        }
        if (!piece->empty() || impl.parser->done()) co_return *piece;
        if (const std::span<char> room = impl.parser->body_room(impl.input); !room.empty()) {
            GB_CO_TRY_ASSIGN(const std::size_t n, co_await impl.read(asio::buffer(room.data(), room.size())));
            if (n > 0) co_return impl.parser->took(n);
            impl.parser->set_eof();
            continue;
        }
        GB_CO_TRY_ASSIGN(bool more, co_await impl.fill());
        if (!more) impl.parser->set_eof();
    }
}

awaitable<Result<std::string>> ClientConnection::read_all(std::size_t limit) {
    std::string out;
    for (;;) {
        GB_CO_TRY_ASSIGN(std::string_view piece, co_await next());
        if (piece.empty()) co_return out;
        if (out.size() + piece.size() > limit) {
            impl_->failed = true;
            co_return fail(ErrorCode::too_large, fmt::format("answer is larger than {} bytes", limit));
        }
        out.append(piece);
    }
}

awaitable<Result<ClientConnection::Response>> ClientConnection::request(RequestHead head,
                                                                        std::string_view body,
                                                                        std::size_t limit) {
    GB_CO_TRY(co_await start(std::move(head), body.size()));
    GB_CO_TRY(co_await write(body));
    Response response;
    GB_CO_TRY_ASSIGN(response.head, co_await read_head());
    GB_CO_TRY_ASSIGN(response.body, co_await read_all(limit));
    co_return response;
}

std::uint64_t ClientConnection::bare_body() const {
    return impl_->parser && impl_->stream->plain() ? impl_->parser->bare(impl_->input) : 0;
}

void ClientConnection::took_bare(std::uint64_t count) {
    impl_->parser->took_bare(count);
}

bool ClientConnection::heard() const {
    return impl_->heard;
}

bool ClientConnection::reusable() const {
    return impl_ && !impl_->failed && !impl_->upgraded && impl_->owed == 0 && !impl_->unfinished &&
           impl_->parser && impl_->parser->done() && impl_->parser->keep_alive() && impl_->input.empty();
}

bool ClientConnection::still_open() {
    return impl_->stream->quiet();
}

std::shared_ptr<Stream> ClientConnection::take_stream(std::string& early) {
    early = std::move(impl_->input);
    return impl_->stream;
}

tcp::socket ClientConnection::take_socket(std::string& early) {
    return std::move(take_stream(early)->socket());
}

tcp::socket& ClientConnection::socket() {
    return impl_->stream->socket();
}

void ClientConnection::close() {
    impl_->failed = true;
    impl_->stream->close();
}

}  // namespace gb::http
