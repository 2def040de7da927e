// SPDX-License-Identifier: Apache-2.0
#include "http/h2_stream.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nghttp2/nghttp2.h>
#include <unistd.h>

#include "base/error_body.h"
#include "base/error_tuple.h"
#include "http/http1_exchange.h"

namespace gb::http::detail {
namespace {

constexpr std::size_t kPiece = std::size_t{128} * 1024;

std::unexpected<Error> gone() {
    return fail(ErrorCode::unavailable, "connection: the client has ended the request");
}

std::unexpected<Error> cancelled() {
    return fail(ErrorCode::unavailable, "connection: the operation was cancelled");
}

}  // namespace

awaitable<bool> Signal::wait() {
    co_await timer_.async_wait(kErrorTuple);
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() == asio::cancellation_type::none;
}

awaitable<Result<std::string_view>> H2Stream::next() {
    if (expects_continue_ && !started_ && incoming_.empty() && !body_ended_ && !closed_)
        session_.say_continue(id_);
    expects_continue_ = false;
    while (incoming_.empty()) {
        if (body_ended_) co_return std::string_view();
        if (closed_) co_return gone();
        if (!co_await input_.wait()) co_return cancelled();
    }
    if (incoming_.size() <= kPiece) {
        piece_.clear();
        piece_.swap(incoming_);
    } else {
        piece_.assign(incoming_, 0, kPiece);
        incoming_.erase(0, kPiece);
    }
    if (!closed_) session_.consumed(id_, piece_.size());
    co_return piece_;
}

awaitable<Status> H2Stream::send(int status, Headers headers, std::string_view body) {
    GB_CO_TRY(open(status, headers, body.size()));
    finished_ = true;
    if (!has_body_) co_return Status{};
    left_ = 0;
    co_return co_await transmit(body, true);
}

awaitable<Status> H2Stream::start(int status, Headers headers, std::optional<std::uint64_t> length) {
    co_return open(status, headers, length);
}

awaitable<Status> H2Stream::write(std::string_view piece) {
    if (!started_ || finished_) co_return fail(ErrorCode::internal, "body written outside of an answer");
    if (piece.empty()) co_return Status{};
    if (left_) {
        if (piece.size() > *left_) co_return fail(ErrorCode::internal, "answer is longer than announced");
        *left_ -= piece.size();
    }
    if (!has_body_) co_return Status{};
    co_return co_await transmit(piece, left_ == 0);
}

awaitable<Status> H2Stream::write_file(int fd, std::uint64_t length) {
    if (!started_ || finished_ || !left_ || length > *left_)
        co_return fail(ErrorCode::internal, "a file needs an answer of known length");
    if (!has_body_) co_return Status{};
    auto room = std::make_unique_for_overwrite<std::array<char, 65536>>();
    while (length > 0) {
        const ssize_t n = ::read(fd, room->data(), std::min<std::uint64_t>(length, room->size()));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            const int error = errno;
            abort();  // its head has promised more
            if (n == 0) co_return fail(ErrorCode::aborted, "the file has become shorter");
            co_return fail_errno(error, "send a file");
        }
        length -= static_cast<std::uint64_t>(n);
        GB_CO_TRY(co_await write({room->data(), static_cast<std::size_t>(n)}));
    }
    co_return Status{};
}

awaitable<Status> H2Stream::finish() {
    if (!started_ || finished_) co_return Status{};
    finished_ = true;
    if (!has_body_) co_return Status{};
    if (left_) {
        if (*left_ > 0) abort();
        co_return Status{};
    }
    co_return co_await transmit({}, true);
}

awaitable<Result<std::shared_ptr<Stream>>> H2Stream::upgrade(ResponseHead, std::string&) {
    co_return fail(ErrorCode::unimplemented, "HTTP/2 has no upgrades; use HTTP/1.1");
}

awaitable<void> H2Stream::peer_closed() {
    while (!gone_ && co_await input_.wait()) {
    }
}

// Without an answer there is nothing to cut yet: as on HTTP/1.1, the client is told so by a 500 in the end.
void H2Stream::abort() {
    cut_ = true;
    if (started_ && !closed_) session_.reset(id_, NGHTTP2_INTERNAL_ERROR);
}

awaitable<void> H2Stream::serve(const Handler& handler, tcp::endpoint peer) {
    is_head_ = head_.method == "HEAD";
    expects_continue_ = iequals(head_.headers.get("expect"), "100-continue");
    RequestHead head = std::move(head_);
    auto target = parse_target(head.target);
    if (head_too_large_) {
        co_await send_json(431, error_body(431, "request head is larger than allowed"));
    } else if (!target) {
        co_await send_json(400, error_body(400, target.error().message));
    } else {
        Exchange exchange{std::move(head), *std::move(target), peer, *this, *this, /*tls=*/true};
        co_await handler(exchange);
    }
    if (!started_) co_await send_json(500, error_body(500, "the request was not answered"));
    if (!finished_) abort();  // a stream that its handler gave up: cut, so that the client knows
    session_.end_request(*this);
}

Status H2Stream::open(int status, Headers& headers, std::optional<std::uint64_t> length) {
    if (started_) return fail(ErrorCode::internal, "second answer to one request");
    started_ = true;
    left_ = length;
    if (bodiless(status))
        left_ = 0;
    else if (length)
        headers.set("content-length", std::to_string(*length));
    has_body_ = !is_head_ && left_ != 0;
    if (closed_) return gone();
    return session_.respond(*this, status, headers, has_body_);
}

awaitable<Status> H2Stream::transmit(std::string_view piece, bool end) {
    if (closed_) co_return gone();
    outgoing_ = piece;
    last_ = end;
    session_.resume(id_);
    while (!outgoing_.empty() || (last_ && !end_given_)) {
        if (closed_) {
            outgoing_ = {};
            co_return gone();
        }
        if (co_await output_.wait()) continue;
        outgoing_ = {};  // the caller's, who goes on without it
        abort();
        co_return cancelled();
    }
    co_return Status{};
}

std::size_t H2Stream::give(char* room, std::size_t size, bool& end) {
    const std::size_t n = std::min(size, outgoing_.size());
    if (n > 0) std::memcpy(room, outgoing_.data(), n);
    outgoing_.remove_prefix(n);
    end = outgoing_.empty() && last_;
    if (end) end_given_ = true;
    if (outgoing_.empty()) output_.notify();
    return n;
}

void H2Stream::add_body(std::string_view bytes) {
    if (served_) return;  // nobody asks for it; a reset is on its way
    incoming_.append(bytes);
    input_.notify();
}

void H2Stream::end_body() {
    body_ended_ = true;
    input_.notify();
}

void H2Stream::on_closed() {
    closed_ = true;
    if (!body_ended_) incoming_.clear();  // half of a body
    input_.notify();
    output_.notify();
    // A request that ended as it should is no client that went away.
    if (!answered_) on_gone();
}

void H2Stream::on_gone() {
    gone_ = true;
    input_.notify();
}

}  // namespace gb::http::detail
