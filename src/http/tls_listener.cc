// SPDX-License-Identifier: Apache-2.0
// Listening with TLS: handshakes, the choice of the protocol, and changed certificate files.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"
#include "base/log.h"
#include "http/h2_connection.h"
#include "http/server_core.h"
#include "http/tls.h"
#include "http/tls_stream.h"

namespace gb::http {
namespace {

using detail::ServerCore;
using detail::TlsStream;

constexpr std::string_view kSpeaksTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 57\r\nConnection: "
    "close\r\n\r\n"
    R"({"code":400,"message":"this port speaks HTTPS, not HTTP"})";

// False when the connection is of no use.
awaitable<bool> shake_hands(ServerCore& core, std::shared_ptr<TlsStream> stream) {
    asio::steady_timer timer(core.executor, core.options.handshake_timeout);
    timer.async_wait([stream](const boost::system::error_code& ec) {
        if (!ec) stream->close();
    });
    const Status done = co_await stream->handshake();
    if (!done && done.error().code == ErrorCode::invalid_argument && stream->socket().is_open())
        co_await asio::async_write(stream->socket(), asio::buffer(kSpeaksTls), kErrorTuple);
    // With the timer's handler queued already the stream is closed, or will be before anything else happens.
    timer.cancel();
    if (!done) log::debug("TLS handshake failed", {{"reason", done.error().message}});
    co_return done.has_value();
}

awaitable<void> serve_tls(std::shared_ptr<ServerCore> core, std::shared_ptr<TlsStream> stream,
                          tcp::endpoint peer) {
    bool agreed = false;
    {
        ServerCore::Open counted(*core, *stream);
        agreed = co_await shake_hands(*core, stream);
    }
    if (!agreed || core->stopped()) co_return;
    if (stream->chose_h2())
        co_await detail::serve_h2(core, stream, peer);
    else
        co_await core->serve_http1(stream, peer);
}

awaitable<void> follow_files(std::shared_ptr<ServerCore> core, std::shared_ptr<ServerTls> tls,
                             std::shared_ptr<asio::steady_timer> timer) {
    while (!core->stopped()) {
        timer->expires_after(core->options.certificate_check);
        auto [ec] = co_await timer->async_wait(kErrorTuple);
        if (ec || core->stopped()) co_return;
        if (!tls->changed()) continue;
        if (const Status loaded = tls->reload(); loaded)
            log::info("new TLS certificate", {{"file", tls->files().certificate_chain.string()}});
        else
            log::error("the changed TLS certificate cannot be used, the old one stays",
                       {{"error", loaded.error().message}});
    }
}

}  // namespace

Result<tcp::endpoint> Server::listen_tls(const tcp::endpoint& where, std::shared_ptr<ServerTls> tls) {
    std::weak_ptr<ServerCore> core = core_;  // its listener keeps this function
    GB_TRY_ASSIGN(const tcp::endpoint at, core_->listen(where, [core, tls](tcp::socket socket,
                                                                           tcp::endpoint peer) {
        return serve_tls(core.lock(), std::make_shared<TlsStream>(std::move(socket), tls->context()), peer);
    }));
    auto timer = std::make_shared<asio::steady_timer>(core_->executor);
    core_->on_stop([timer] { timer->cancel(); });
    asio::co_spawn(core_->executor, follow_files(core_, std::move(tls), timer), asio::detached);
    return at;
}

}  // namespace gb::http
