// SPDX-License-Identifier: Apache-2.0
#include "http/http1_exchange.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error_tuple.h"

namespace gb::http::detail {
namespace {

constexpr std::uint64_t kFilePiece = 1 << 20;
constexpr std::size_t kReadAhead = 64 * 1024;
constexpr std::string_view kLastChunk = "0\r\n\r\n";
Error broken(const boost::system::error_code& ec) {
    return {ErrorCode::unavailable, "connection: " + ec.message()};
}

}  // namespace

awaitable<Result<std::string_view>> Http1Exchange::next() {
    if (request_.expects_continue && !started_) {
        request_.expects_continue = false;
        GB_CO_TRY(co_await raw("HTTP/1.1 100 Continue\r\n\r\n"));
    }
    for (;;) {
        GB_CO_TRY_ASSIGN(std::string_view piece, parser_.parse_body(input_));
        if (!piece.empty() || parser_.done()) co_return piece;
        const std::span<char> room = parser_.body_room(input_);
        auto [ec, n] = co_await stream_->read_some(room.empty() ? asio::buffer(chunk_)
                                                                : asio::buffer(room.data(), room.size()));
        if (ec == asio::error::eof) {
            parser_.set_eof();
            continue;
        }
        if (ec) co_return std::unexpected(broken(ec));
        if (!room.empty()) co_return parser_.took(n);
        input_.append(chunk_.data(), n);
    }
}

awaitable<Status> Http1Exchange::send(int status, Headers headers, std::string_view body) {
    GB_CO_TRY_ASSIGN(std::string head, open_head(status, std::move(headers), body.size()));
    finished_ = true;
    if (request_.is_head || bodiless(status)) co_return co_await raw(head);
    if (body.size() < 16384) {
        head.append(body);
        co_return co_await raw(head);
    }
    std::array<asio::const_buffer, 2> both{asio::buffer(head), asio::buffer(body.data(), body.size())};
    auto [ec, n] = co_await stream_->write(both);
    if (ec) co_return std::unexpected(fail_write(ec));
    co_return Status{};
}

awaitable<Status> Http1Exchange::start(int status, Headers headers, std::optional<std::uint64_t> length) {
    GB_CO_TRY_ASSIGN(std::string head, open_head(status, std::move(headers), length));
    left_ = length;
    if (bodiless(status)) left_ = 0;
    co_return co_await raw(head);
}

awaitable<Status> Http1Exchange::write(std::string_view piece) {
    if (!started_ || finished_) co_return fail(ErrorCode::internal, "body written outside of an answer");
    if (piece.empty() || request_.is_head) co_return Status{};
    if (left_) {
        if (piece.size() > *left_) co_return fail(ErrorCode::internal, "answer is longer than announced");
        *left_ -= piece.size();
        co_return co_await raw(piece);
    }
    if (!is_chunked()) co_return co_await raw(piece);
    co_return co_await write_chunk({}, piece, {});
}

// Not with HTTP/1.0, where the end of the connection ends the body.
bool Http1Exchange::is_chunked() const {
    return !left_ && request_.version >= 11;
}

awaitable<Status> Http1Exchange::write_chunk(std::string_view before, std::string_view piece,
                                             std::string_view behind) {
    const std::string front = fmt::format("{}{:x}\r\n", before, piece.size());
    const std::string back = fmt::format("\r\n{}", behind);
    std::array<asio::const_buffer, 3> parts{asio::buffer(front), asio::buffer(piece.data(), piece.size()),
                                            asio::buffer(back)};
    auto [ec, n] = co_await stream_->write(parts);
    if (ec) co_return std::unexpected(fail_write(ec));
    co_return Status{};
}

awaitable<Status> Http1Exchange::start_with(int status, Headers headers, std::string_view first) {
    if (first.empty() || request_.is_head || bodiless(status))
        co_return co_await start(status, std::move(headers), {});
    GB_CO_TRY_ASSIGN(const std::string head, open_head(status, std::move(headers), {}));
    if (is_chunked()) co_return co_await write_chunk(head, first, {});
    co_return co_await raw(head + std::string(first));
}

awaitable<Status> Http1Exchange::finish_with(std::string_view last) {
    if (!started_ || finished_ || last.empty() || request_.is_head || !is_chunked())
        co_return co_await ResponseWriter::finish_with(last);
    finished_ = true;
    co_return co_await write_chunk({}, last, kLastChunk);
}

awaitable<Status> Http1Exchange::write_file(int fd, std::uint64_t length) {
    if (!started_ || finished_ || !left_ || length > *left_)
        co_return fail(ErrorCode::internal, "a file needs an answer of known length");
    if (request_.is_head) co_return Status{};
    co_return stream_->plain() ? co_await send_file(fd, length) : co_await copy_file(fd, length);
}

awaitable<Status> Http1Exchange::send_file(int fd, std::uint64_t length) {
    tcp::socket& socket = stream_->socket();
    boost::system::error_code ignored;
    socket.native_non_blocking(true, ignored);
    while (length > 0) {
        const ssize_t n = ::sendfile(socket.native_handle(), fd, nullptr,
                                     static_cast<std::size_t>(std::min<std::uint64_t>(length, kFilePiece)));
        if (n > 0) {
            length -= static_cast<std::uint64_t>(n);
            *left_ -= static_cast<std::uint64_t>(n);
            // A client that is as fast as the disk must not keep the loop to itself.
            co_await asio::post(socket.get_executor(), asio::use_awaitable);
        } else if (n < 0 && errno == EAGAIN) {
            auto [ec] = co_await socket.async_wait(tcp::socket::wait_write, kErrorTuple);
            if (ec) co_return std::unexpected(fail_write(ec));
        } else if (n == 0 || errno != EINTR) {
            co_return file_ended(n);
        }
    }
    co_return Status{};
}

awaitable<Result<std::uint64_t>> Http1Exchange::write_from(tcp::socket& from, std::uint64_t most) {
    if (!started_ || finished_ || !left_ || request_.is_head || !stream_->plain()) co_return 0;
    if (!pipe_) {
        auto opened = SplicePipe::open();
        if (!opened) co_return 0;  // no descriptors left: the copying way needs none
        pipe_.emplace(*std::move(opened));
    }
    auto moved = co_await pipe_->move(from, stream_->socket(), std::min(most, *left_));
    if (moved && *moved == 0) moved = fail(ErrorCode::unavailable, "connection closed in the middle of a message");
    if (!moved) {
        abort();
        co_return moved;
    }
    *left_ -= *moved;
    // Two peers that are as fast as memory must not keep the loop to themselves.
    co_await asio::post(stream_->socket().get_executor(), asio::use_awaitable);
    co_return moved;
}

// Over TLS the bytes pass through here to be encrypted.
awaitable<Status> Http1Exchange::copy_file(int fd, std::uint64_t length) {
    auto piece = std::make_unique_for_overwrite<std::array<char, 65536>>();
    while (length > 0) {
        const ssize_t n = ::read(fd, piece->data(), std::min<std::uint64_t>(length, piece->size()));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) co_return file_ended(n);
        length -= static_cast<std::uint64_t>(n);
        *left_ -= static_cast<std::uint64_t>(n);
        GB_CO_TRY(co_await raw({piece->data(), static_cast<std::size_t>(n)}));
    }
    co_return Status{};
}

std::unexpected<Error> Http1Exchange::file_ended(ssize_t got) {
    const int error = errno;
    abort();  // its head has promised more: cut, so that nobody takes this for whole
    if (got == 0) return fail(ErrorCode::aborted, "the file has become shorter");
    return fail_errno(error, "send a file");
}

awaitable<Status> Http1Exchange::finish() {
    if (!started_ || finished_) co_return Status{};
    finished_ = true;
    if (request_.is_head) co_return Status{};
    if (left_) {
        if (*left_ > 0) abort();
        co_return Status{};
    }
    if (request_.version < 11) {
        must_close_ = true;
        co_return Status{};
    }
    co_return co_await raw(kLastChunk);
}

awaitable<Result<std::shared_ptr<Stream>>> Http1Exchange::upgrade(ResponseHead head, std::string& early) {
    if (started_) co_return fail(ErrorCode::internal, "upgrade after an answer was started");
    started_ = finished_ = upgraded_ = true;
    GB_CO_TRY(co_await raw(write_head(head)));
    early = std::move(input_);
    input_.clear();
    co_return std::move(stream_);
}

awaitable<void> Http1Exchange::peer_closed() {
    if (!stream_->plain() && !co_await read_ahead()) co_return;
    co_await watch_socket();
}

awaitable<void> Http1Exchange::watch_socket() {
    tcp::socket& socket = stream_->socket();
    asio::steady_timer pause(socket.get_executor());
    for (;;) {
        auto [ec] = co_await socket.async_wait(tcp::socket::wait_read, kErrorTuple);
        if (ec) co_return;
        char c = 0;
        ssize_t n = ::recv(socket.native_handle(), &c, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) co_return;
        // The next request is waiting already: readable says nothing more, so look again now and then.
        pause.expires_after(std::chrono::milliseconds(500));
        auto [timer_ec] = co_await pause.async_wait(kErrorTuple);
        if (timer_ec) co_return;
    }
}

// Of TLS only reading tells what a readable socket means. What comes belongs to this body or the next
// request; false at the end, true when enough is there already.
awaitable<bool> Http1Exchange::read_ahead() {
    while (input_.size() < kReadAhead) {
        auto [ec, n] = co_await stream_->read_some(asio::buffer(chunk_));
        if (ec) co_return false;
        input_.append(chunk_.data(), n);
    }
    co_return true;
}

Result<std::string> Http1Exchange::open_head(int status, Headers headers,
                                             std::optional<std::uint64_t> length) {
    if (started_) return fail(ErrorCode::internal, "second answer to one request");
    started_ = true;
    // The client was not told to send its body and may never do so: what comes next could be either.
    if (request_.expects_continue && !parser_.done()) must_close_ = true;
    const bool until_close = request_.version < 11 && !length;
    if (!bodiless(status)) {
        if (length)
            headers.set("Content-Length", std::to_string(*length));
        else if (!until_close)
            headers.set("Transfer-Encoding", "chunked");
    }
    if (headers.lists("Connection", "close")) must_close_ = true;
    if (!parser_.keep_alive() || must_close_ || until_close) {
        headers.set("Connection", "close");
        if (until_close) must_close_ = true;
    } else if (request_.version < 11) {
        headers.set("Connection", "keep-alive");
    }
    return write_head(ResponseHead{status, std::move(headers)});
}

Error Http1Exchange::fail_write(const boost::system::error_code& ec) {
    abort();
    return broken(ec);
}

awaitable<Status> Http1Exchange::raw(std::string_view bytes) {
    auto [ec, n] = co_await stream_->write(asio::buffer(bytes.data(), bytes.size()));
    if (ec) co_return std::unexpected(fail_write(ec));
    co_return Status{};
}

}  // namespace gb::http::detail
