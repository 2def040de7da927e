// SPDX-License-Identifier: Apache-2.0
// TLS on a TCP connection that exists: as the client of a server that must prove its name, and as the server
// of a client that was accepted elsewhere. HTTP/1.1 only. Needs the library gb_https.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/stream.h"

using SSL_CTX = struct ssl_ctx_st;  // OpenSSL's own declaration

namespace gb::http {

// What is asked of servers: a chain to a root of the system's bundle (or of another file), valid now, for
// exactly the name that was asked for (RFC 9525: subject alternative names, wildcards only as a whole label),
// TLS 1.2 or newer, ALPN http/1.1. Revocation is not looked up. One executor; not thread-safe.
class ClientTls {
  public:
    // `extra_bundle`: a PEM file of roots that count beside the system's; empty: none. Errors name the file.
    static Result<std::shared_ptr<ClientTls>> make(const std::filesystem::path& extra_bundle = {});

    // `host`: a DNS name without a dot at its end, or an address; goes out as SNI if it is a name.
    // failed_precondition: the certificate was not accepted, and which check failed; nothing of the
    // certificate. deadline_exceeded, unavailable: as they say. The stream's end without a proper end of TLS
    // is an error.
    [[nodiscard]] awaitable<Result<std::shared_ptr<Stream>>> connect(tcp::socket socket, std::string host,
                                                                     std::chrono::milliseconds timeout) const;

  private:
    explicit ClientTls(std::shared_ptr<SSL_CTX> context) : context_(std::move(context)) {}
    std::shared_ptr<SSL_CTX> context_;
};

// The server's side, with the certificate and ALPN of `context`. `early`: what was read from the socket
// already. invalid_argument when the client speaks HTTP without TLS; unavailable with OpenSSL's reason
// otherwise.
awaitable<Result<std::shared_ptr<Stream>>> accept_tls(tcp::socket socket, std::shared_ptr<SSL_CTX> context,
                                                      std::string early, std::chrono::milliseconds timeout);

}  // namespace gb::http
