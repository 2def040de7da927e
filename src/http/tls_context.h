// SPDX-License-Identifier: Apache-2.0
// What every TLS context of this server has in common: TLS 1.2 and newer, no compression, no renegotiation,
// no sessions that are kept, and writes that may be continued from another place. Needs the library gb_https.
#pragma once

#include <memory>

using SSL_CTX = struct ssl_ctx_st;  // OpenSSL's own declarations
using SSL_METHOD = struct ssl_method_st;

namespace gb::http {

// Null when OpenSSL cannot.
std::shared_ptr<SSL_CTX> new_tls_context(const SSL_METHOD* method);

enum class Alpn { http1, http2_and_1 };
// Of a server: chooses by its own preference. A client that offers protocols and none of ours is refused (RFC
// 7301 3.2).
void choose_protocol(SSL_CTX* context, Alpn ours);

}  // namespace gb::http
