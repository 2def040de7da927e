// SPDX-License-Identifier: Apache-2.0
#include "egress/http_relay.h"

#include <array>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error_body.h"
#include "egress/relay_head.h"
#include "http/pass_body.h"

namespace gb::egress {
namespace {

namespace asio = http::asio;
using http::awaitable;
using http::Exchange;
using http::Stream;
constexpr std::uint64_t kLeastSplice = 256 * 1024;  // for less a pipe is not worth its while

// The connection ends behind it: what else the guest has sent on it is of the same making.
// Proxy-Status (RFC 9209) says that this is the answer of nobody further away.
awaitable<void> refuse(Exchange& exchange, int status, std::string_view reason) {
    if (exchange.response.started()) co_return;
    const char* error = status == 502 ? "glovebox; error=destination_unavailable"
                                      : "glovebox; error=http_request_denied";
    co_await exchange.response.send(
        status,
        {{"Content-Type", "application/json"}, {"Connection", "close"}, {"Proxy-Status", error}},
        error_body(status, reason));
}

// Which answer an error of route() becomes; of open(), where only a refusal is one.
int route_status(const Error& error) {
    return error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded ? 502 : 403;
}
int open_status(const Error& error) {
    return error.code == ErrorCode::permission_denied ? 403 : 502;
}

// A proper end of one direction leaves the other one open; anything else ends both.
awaitable<void> copy(Stream& from, Stream& to) {
    co_await asio::this_coro::throw_if_cancelled(false);
    auto room = std::make_unique_for_overwrite<std::array<char, 65536>>();
    for (;;) {
        auto [ec, n] = co_await from.read_some(asio::buffer(*room));
        if (ec == asio::error::eof) co_return co_await to.shutdown_send();
        if (ec) break;
        auto [write_ec, written] = co_await to.write(asio::buffer(room->data(), n));
        if (write_ec) break;
    }
    from.close();
    to.close();
}

http::ServerOptions server_options(const RelayOptions& options) {
    http::ServerOptions out;
    out.max_header_bytes = options.max_head_bytes;
    out.idle_timeout = options.idle_timeout;
    out.header_timeout = options.header_timeout;
    out.relaying = true;
    return out;
}

}  // namespace

HttpRelay::HttpRelay(std::shared_ptr<Stream> guest, RelayOptions options)
    : guest_(std::move(guest)),
      options_(std::move(options)),
      server_(
          guest_->socket().get_executor(), [this](Exchange& exchange) { return handle(exchange); },
          server_options(options_)),
      stall_timer_(guest_->socket().get_executor()) {
    if (!options_.counters) options_.counters = std::make_shared<ByteCounters>();
}

HttpRelay::~HttpRelay() = default;

awaitable<void> HttpRelay::run() {
    const auto self = shared_from_this();
    if (stopped_) co_return;
    watch_for_stalls();
    boost::system::error_code ignored;
    co_await server_.serve(guest_, guest_->socket().remote_endpoint(ignored));
    stall_timer_.cancel();
    guest_->close();
    drop_upstream();
}

void HttpRelay::stop() {
    if (stopped_) return;
    stopped_ = true;
    boost::system::error_code ignored;
    // A cut must not look like the end of an answer that only the connection's end delimits.
    guest_->socket().set_option(asio::socket_base::linger(true, 0), ignored);
    guest_->close();
    server_.stop();
    if (upstream_stream_) upstream_stream_->close();
    stall_timer_.cancel();
}

void HttpRelay::drop_upstream() {
    if (upstream_stream_) upstream_stream_->close();
    upstream_.reset();
    upstream_stream_.reset();
    upstream_key_.clear();
}

void HttpRelay::cut(Exchange& exchange) {
    exchange.response.abort();
    boost::system::error_code ignored;
    guest_->socket().set_option(asio::socket_base::linger(true, 0), ignored);
}

// The timer's handler may be queued when this object goes.
void HttpRelay::watch_for_stalls() {
    stall_timer_.expires_after(options_.stall_timeout);
    stall_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
        const auto self = weak.lock();
        if (ec || !self || self->stopped_) return;
        const std::uint64_t moved = self->counters().up + self->counters().down;
        if (self->busy_ && moved == self->moved_) return self->stop();
        self->moved_ = moved;
        self->watch_for_stalls();
    });
}

awaitable<Status> HttpRelay::connect(const Route& route) {
    drop_upstream();
    GB_CO_TRY_ASSIGN(std::shared_ptr<Stream> stream, co_await route.open());
    if (stopped_) {
        stream->close();
        co_return fail(ErrorCode::canceled, "stopped");
    }
    upstream_stream_ = std::make_shared<CountingStream>(std::move(stream), options_.counters);
    upstream_key_ = route.key;
    upstream_.emplace(upstream_stream_,
                      http::ClientOptions{.max_head_bytes = options_.max_answer_head_bytes, .strict = true});
    co_return Status{};
}

awaitable<void> HttpRelay::handle(Exchange& exchange) {
    auto request = read_request(exchange.head, exchange.tls, exchange.version);
    if (!request)
        co_return co_await refuse(exchange, request.error().code == ErrorCode::permission_denied ? 403 : 400,
                                  request.error().message);
    auto route = co_await options_.route(request->host);
    if (stopped_) co_return cut(exchange);
    if (!route) co_return co_await refuse(exchange, route_status(route.error()), route.error().message);
    if (request->traced && !route->rules.empty())
        co_return co_await refuse(exchange, 403, "trace: the answer would show headers that are set here");
    if (const Status applied = apply(route->rules, request->head.headers, route->secrets); !applied)
        co_return co_await refuse(exchange, 403, "header-rule: " + applied.error().message);

    busy_ = true;
    bool kept = upstream_ && upstream_key_ == route->key && upstream_->still_open();
    Passed passed;
    for (;;) {
        if (!kept) {
            const Status connected = co_await connect(*route);
            if (stopped_) co_return cut(exchange);
            if (!connected)
                co_return co_await refuse(exchange, open_status(connected.error()),
                                          connected.error().message);
        }
        passed = co_await pass(exchange, *request);
        if (stopped_) co_return cut(exchange);
        const bool again = kept && request->repeatable && passed.outcome == Outcome::no_answer &&
                           passed.error && passed.error->code == ErrorCode::unavailable;
        if (!again) break;
        kept = false;
    }
    if (passed.outcome == Outcome::upgraded) co_await tunnel(exchange);
    if (passed.outcome != Outcome::complete || !upstream_->reusable()) drop_upstream();
    busy_ = false;
    switch (passed.outcome) {
        case Outcome::complete:
        case Outcome::upgraded:
            break;
        case Outcome::no_answer:
            co_await refuse(exchange, 502, passed.error ? passed.error->message : "no answer");
            break;
        case Outcome::bad_request:
            co_await refuse(exchange, 400, "malformed HTTP body");
            break;
        case Outcome::cut:
            cut(exchange);
            break;
    }
}

// Sends the request, and its body while the answer comes back: the answer decides when an exchange is over.
awaitable<HttpRelay::Passed> HttpRelay::pass(Exchange& exchange, const RelayRequest& request) {
    using namespace asio::experimental::awaitable_operators;
    const std::shared_ptr<Stream> stream = upstream_stream_;
    asio::steady_timer limit(guest_->socket().get_executor(), options_.answer_timeout);
    // Its handler may be queued already when this frame ends.
    auto answered = std::make_shared<bool>(false);
    limit.async_wait([stream, answered](const boost::system::error_code& ec) {
        if (!ec && !*answered) stream->close();
    });
    const Status sent = co_await upstream_->start(request.head, request.length);
    if (!sent) co_return Passed{Outcome::no_answer, sent.error()};
    auto answer = [&]() -> awaitable<Passed> {
        co_await asio::this_coro::throw_if_cancelled(false);
        const auto cancellation = co_await asio::this_coro::cancellation_state;
        auto head = co_await upstream_->read_head();
        *answered = true;
        limit.cancel();
        if (cancellation.cancelled() != asio::cancellation_type::none) co_return Passed{Outcome::cut, {}};
        if (!head) co_return Passed{Outcome::no_answer, head.error()};
        if (head->status == 101) {
            auto upgraded =
                request.websocket
                    ? read_websocket_answer(*std::move(head))
                    : fail(ErrorCode::internal, "the server changes to a protocol that nobody asked for");
            if (!upgraded) co_return Passed{Outcome::no_answer, upgraded.error()};
            upgraded_ = *std::move(upgraded);
            co_return Passed{Outcome::upgraded, {}};
        }
        co_return co_await send_answer(exchange, *std::move(head));
    };
    auto result =
        co_await (http::pass_body(exchange, *upstream_, !request.length || *request.length > 0) || answer());
    if (result.index() == 1) co_return std::get<1>(std::move(result));
    const bool malformed = std::get<0>(result) && !exchange.response.started();
    co_return Passed{malformed ? Outcome::bad_request : Outcome::cut, {}};
}

awaitable<HttpRelay::Passed> HttpRelay::send_answer(Exchange& exchange, http::ResponseHead head) {
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    auto over = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
    const Passed cut_off{Outcome::cut, {}};
    RelayAnswer answer = read_answer(std::move(head));
    if (!co_await exchange.response.start(answer.head.status, std::move(answer.head.headers), answer.length))
        co_return cut_off;
    for (;;) {
        if (const std::uint64_t bare = upstream_->bare_body(); bare >= kLeastSplice) {
            auto moved = co_await exchange.response.write_from(upstream_->socket(), bare);
            if (!moved || over()) co_return cut_off;
            options_.counters->down += *moved;
            upstream_->took_bare(*moved);
            if (*moved > 0) continue;
        }
        auto piece = co_await upstream_->next();
        if (!piece || over()) co_return cut_off;
        if (piece->empty()) break;
        if (!co_await exchange.response.write(*piece) || over()) co_return cut_off;
    }
    if (!co_await exchange.response.finish()) co_return cut_off;
    co_return Passed{Outcome::complete, {}};
}

awaitable<void> HttpRelay::tunnel(Exchange& exchange) {
    using namespace asio::experimental::awaitable_operators;
    std::string from_guest, from_upstream;
    auto guest = co_await exchange.response.upgrade(std::move(upgraded_), from_guest);
    if (!guest || stopped_) co_return;
    const std::shared_ptr<Stream> upstream = upstream_->take_stream(from_upstream);
    co_await upstream->write(asio::buffer(from_guest));
    co_await (*guest)->write(asio::buffer(from_upstream));
    co_await (copy(**guest, *upstream) && copy(*upstream, **guest));
}

}  // namespace gb::egress
