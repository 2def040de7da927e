// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on one connection: head after head, each answered by the handler.
#include <array>

#include <boost/asio/steady_timer.hpp>

#include "base/error_body.h"
#include "http/head_check.h"
#include "http/http1_exchange.h"
#include "http/server_core.h"

namespace gb::http::detail {
namespace {

// A body that the handler left unread stands between this request and the next one. Short ones are read away.
awaitable<bool> drain(Http1Exchange& io) {
    std::size_t total = 0;
    for (;;) {
        auto piece = co_await io.next();
        if (!piece) co_return false;
        if (piece->empty()) co_return true;
        total += piece->size();
        if (total > 256 * 1024) co_return false;
    }
}

awaitable<void> refuse(std::shared_ptr<Stream> stream, const Error& error) {
    const int status = error.code == ErrorCode::too_large ? 431 : 400;
    std::string body = error_body(status, error.message);
    std::string text = write_head(ResponseHead{status,
                                               {{"Content-Type", "application/json"},
                                                {"Content-Length", std::to_string(body.size())},
                                                {"Connection", "close"}}}) +
                       body;
    co_await stream->write(asio::buffer(text));
    co_await linger(stream);
}

}  // namespace

awaitable<void> ServerCore::serve_http1(std::shared_ptr<Stream> stream, tcp::endpoint peer) {
    auto self = shared_from_this();
    Open counted(*this, *stream);
    std::string input;
    auto chunk = std::make_unique_for_overwrite<std::array<char, 65536>>();
    asio::steady_timer timer(executor);
    // Its handler may be queued already when this frame ends, so it has the stream too.
    auto limit = [&](std::chrono::seconds time) {
        timer.expires_after(time);
        timer.async_wait([stream](const boost::system::error_code& timer_ec) {
            if (!timer_ec) stream->close();
        });
    };
    bool close = false, cut = false;
    while (!close && !stopped_) {
        auto parser = std::make_unique<MessageParser<true>>(options.max_header_bytes);
        bool head_begun = !input.empty();
        limit(head_begun ? options.header_timeout : options.idle_timeout);
        HeadCheck check(HeadCheck::Kind::request);
        auto parse = [&]() -> Result<bool> {
            if (options.relaying) {
                GB_TRY_ASSIGN(const bool whole, check.look(input, options.max_header_bytes));
                if (!whole) return false;  // the parser would take the part that it understands
            }
            return parser->parse_head(input);
        };
        Result<bool> head = parse();
        while (head && !*head) {
            auto [read_ec, n] = co_await stream->read_some(asio::buffer(*chunk));
            if (read_ec) co_return;
            if (!head_begun) limit(options.header_timeout);  // once: a head that drips in gets no more time
            head_begun = true;
            input.append(chunk->data(), n);
            head = parse();
        }
        timer.cancel();
        // RFC 9112 6.3: a body framed in a way that we do not know has no end that we could find.
        if (head && parser->unknown_framing())
            head = fail(ErrorCode::invalid_argument, "unknown Transfer-Encoding");
        if (!head) co_return co_await refuse(stream, head.error());
        const auto& message = parser->message();
        RequestHead request;
        request.method = std::string(message.method_string().data(), message.method_string().size());
        request.target = std::string(message.target().data(), message.target().size());
        request.headers = parser->headers();
        const Http1Exchange::Request kind{
            .is_head = request.method == "HEAD",
            .expects_continue =
                message.version() >= 11 && iequals(request.headers.get("Expect"), "100-continue"),
            .version = static_cast<int>(message.version())};
        auto io = std::make_unique<Http1Exchange>(stream, input, *parser, kind);
        auto target = options.relaying ? Result<Target>(Target{}) : parse_target(request.target);
        if (!target) {
            co_await io->send_json(400, error_body(400, target.error().message));
        } else {
            Exchange exchange{std::move(request),      *std::move(target), peer, *io, *io,
                              /*tls=*/!stream->plain(), kind.version};
            co_await handler(exchange);
        }
        if (io->upgraded()) co_return;
        if (!io->started()) co_await io->send_json(500, error_body(500, "the request was not answered"));
        if (!io->finished()) io->abort();  // a stream that its handler gave up: cut, so that the client knows
        close = io->must_close() || !parser->keep_alive();
        cut = io->cut();
        if (!parser->done()) {
            limit(options.header_timeout);
            if (io->must_close() || !co_await drain(*io)) {
                if (!io->cut()) co_await linger(stream);
                close = true;
            }
            timer.cancel();
        } else if (io->must_close() && !io->cut()) {
            co_await linger(stream);  // a client that did not know of it may have sent its next request
        }
    }
    if (cut || stopped_) co_return;
    limit(options.header_timeout);  // over TLS that is a message, which must find room on the connection
    co_await stream->shutdown_send();
    timer.cancel();
}

}  // namespace gb::http::detail
