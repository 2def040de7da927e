// SPDX-License-Identifier: Apache-2.0
#include "http/tls_handshake.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/tls_context.h"
#include "http/tls_stream.h"

namespace gb::http {
namespace {

using detail::TlsStream;

awaitable<Result<std::shared_ptr<Stream>>> shake_hands(std::shared_ptr<TlsStream> stream,
                                                       std::chrono::milliseconds timeout) {
    // Shared with the timer's handler, which may be queued already when this frame ends.
    auto timed_out = std::make_shared<bool>(false);
    asio::steady_timer timer(stream->socket().get_executor(), timeout);
    timer.async_wait([stream, timed_out](const boost::system::error_code& ec) {
        if (ec) return;
        *timed_out = true;
        stream->close();
    });
    const Status done = co_await stream->handshake();
    timer.cancel();
    if (*timed_out)
        co_return fail(ErrorCode::deadline_exceeded,
                       fmt::format("no TLS handshake within {} ms", timeout.count()));
    if (!done) co_return std::unexpected(done.error());
    co_return stream;
}

}  // namespace

Result<std::shared_ptr<ClientTls>> ClientTls::make(const std::filesystem::path& extra_bundle) {
    static constexpr std::string_view kAlpn = "\x08http/1.1";
    std::shared_ptr<SSL_CTX> context = new_tls_context(TLS_client_method());
    const bool made =
        context && SSL_CTX_set_default_verify_paths(context.get()) == 1 &&
        SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(kAlpn.data()),
                                static_cast<unsigned>(kAlpn.size())) == 0;  // 0 is its success
    ERR_clear_error();
    if (!made) return fail(ErrorCode::internal, "OpenSSL cannot make a TLS client");
    if (!extra_bundle.empty() && SSL_CTX_load_verify_file(context.get(), extra_bundle.c_str()) != 1) {
        ERR_clear_error();
        return fail(ErrorCode::failed_precondition,
                    fmt::format("{}: cannot be read as a PEM file of certificates", extra_bundle.string()));
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    return std::shared_ptr<ClientTls>(new ClientTls(std::move(context)));
}

awaitable<Result<std::shared_ptr<Stream>>> ClientTls::connect(tcp::socket socket, std::string host,
                                                              std::chrono::milliseconds timeout) const {
    auto stream = std::make_shared<TlsStream>(std::move(socket), context_.get(), TlsStream::Side::client);
    GB_CO_TRY(stream->expect_host(host));
    co_return co_await shake_hands(std::move(stream), timeout);
}

awaitable<Result<std::shared_ptr<Stream>>> accept_tls(tcp::socket socket, std::shared_ptr<SSL_CTX> context,
                                                      std::string early, std::chrono::milliseconds timeout) {
    auto stream = std::make_shared<TlsStream>(std::move(socket), context.get(), TlsStream::Side::server,
                                              std::move(early));
    co_return co_await shake_hands(std::move(stream), timeout);
}

}  // namespace gb::http
