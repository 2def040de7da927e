// SPDX-License-Identifier: Apache-2.0
#include "probe/tls_probe.h"

#include <array>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include "base/openssl_ptr.h"

namespace gb::probe {

Result<std::string> shake_hands(int fd, const std::string& name, Patience patience) {
    const std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
    if (!context) return fail(ErrorCode::internal, "OpenSSL");
    const std::unique_ptr<SSL, OpenSslFree<SSL_free>> ssl(SSL_new(context.get()));
    if (!ssl || SSL_set_fd(ssl.get(), fd) != 1) return fail(ErrorCode::internal, "OpenSSL");
    if (!name.empty() && SSL_set_tlsext_host_name(ssl.get(), name.c_str()) != 1)
        return fail(ErrorCode::invalid_argument, "no name for SNI");
    for (;;) {
        errno = 0;
        ERR_clear_error();
        const int done = SSL_connect(ssl.get());
        if (done == 1) break;
        const int why = SSL_get_error(ssl.get(), done);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            if (!wait_for(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, patience))
                return fail(ErrorCode::deadline_exceeded, "TLS: no answer");
            continue;
        }
        // An alert is an answer from the other end.
        if (why == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_last_error()) >= SSL_AD_REASON_OFFSET)
            return std::string("the server answers with an alert");
        if (errno != 0) return fail_errno("TLS");
        return fail(ErrorCode::unavailable, "TLS: cut");
    }
    const std::unique_ptr<X509, OpenSslFree<X509_free>> certificate(SSL_get1_peer_certificate(ssl.get()));
    std::array<char, 160> subject{};
    if (certificate)
        X509_NAME_oneline(X509_get_subject_name(certificate.get()), subject.data(),
                          static_cast<int>(subject.size()));
    return fmt::format("certificate of {}", subject.data());
}

}  // namespace gb::probe
