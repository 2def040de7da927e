// SPDX-License-Identifier: Apache-2.0
#include "http/tls_context.h"

#include <string_view>

#include <openssl/ssl.h>

namespace gb::http {
namespace {

constexpr std::string_view kHttp1 = "\x08http/1.1", kHttp2And1 = "\x02h2\x08http/1.1";

template <const std::string_view& ours>
int choose(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* offered,
           unsigned offered_length, void*) {
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_length, reinterpret_cast<const unsigned char*>(ours.data()),
                              static_cast<unsigned>(ours.size()), offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace

std::shared_ptr<SSL_CTX> new_tls_context(const SSL_METHOD* method) {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
    if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) return nullptr;
    SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    // Peers keep their sessions in tickets; nothing is kept here.
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(context.get(), 1);
    return context;
}

void choose_protocol(SSL_CTX* context, Alpn ours) {
    SSL_CTX_set_alpn_select_cb(context, ours == Alpn::http1 ? choose<kHttp1> : choose<kHttp2And1>, nullptr);
}

}  // namespace gb::http
