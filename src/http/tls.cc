// SPDX-License-Identifier: Apache-2.0
#include "http/tls.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/file.h"
#include "base/openssl_ptr.h"
#include "http/tls_context.h"

namespace gb::http {
namespace {

using Certificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;

// OpenSSL would ask at the terminal.
int no_passphrase(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

std::unexpected<Error> refuse(const std::filesystem::path& file, std::string_view what) {
    ERR_clear_error();
    return fail(ErrorCode::failed_precondition, fmt::format("{}: {}", file.string(), what));
}

Result<std::shared_ptr<SSL_CTX>> make_context() {
    std::shared_ptr<SSL_CTX> context = new_tls_context(TLS_server_method());
    // RFC 9113 9.2.2: with TLS 1.2 only suites with forward secrecy and authenticated encryption.
    if (!context || SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
        ERR_clear_error();
        return fail(ErrorCode::internal, "OpenSSL cannot make a TLS server");
    }
    choose_protocol(context.get(), Alpn::http2_and_1);
    return context;
}

Status use_chain(SSL_CTX* context, const std::filesystem::path& file) {
    GB_TRY_ASSIGN(const std::string text, read_file(file));
    const OpenSslBio bio = bio_of(text);
    bool asked = false;
    const Certificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, no_passphrase, &asked));
    if (!own) return refuse(file, "holds no certificate in PEM form; give the chain, the server's own first");
    if (SSL_CTX_use_certificate(context, own.get()) != 1)
        return refuse(file,
                      "the certificate cannot be used; it may be too weak (RSA below 2048 bits, SHA-1)");
    for (;;) {
        Certificate next(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, &asked));
        if (!next) break;
        if (SSL_CTX_add0_chain_cert(context, next.get()) != 1)
            return refuse(file, "a certificate of the chain cannot be used");
        (void)next.release();  // the context's now
    }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return refuse(file, "a certificate of the chain is damaged; write the file anew");
    ERR_clear_error();
    return {};
}

Status use_key(SSL_CTX* context, const TlsFiles& files) {
    Wiped text;
    GB_TRY_ASSIGN(text.text, read_file(files.private_key));
    const OpenSslBio bio = bio_of(text.text);
    bool asked = false;
    const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked));
    if (!key && asked)
        return refuse(files.private_key,
                      "the key has a passphrase; store it without one, readable by the server only");
    if (!key) return refuse(files.private_key, "holds no private key in PEM form");
    // Before it is used: OpenSSL would drop the certificate instead.
    if (X509_check_private_key(SSL_CTX_get0_certificate(context), key.get()) != 1)
        return refuse(files.private_key, fmt::format("is not the key of the first certificate in {}",
                                                     files.certificate_chain.string()));
    if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
        return refuse(files.private_key, "the key cannot be used; it may be too weak");
    return {};
}

}  // namespace

Result<std::shared_ptr<ServerTls>> ServerTls::load(TlsFiles files) {
    std::shared_ptr<ServerTls> tls(new ServerTls(std::move(files)));
    GB_TRY(tls->reload());
    return tls;
}

Status ServerTls::reload() {
    seen_ = stamps();  // before reading: what is written meanwhile counts as changed
    GB_TRY_ASSIGN(std::shared_ptr<SSL_CTX> context, make_context());
    GB_TRY(use_chain(context.get(), files_.certificate_chain));
    GB_TRY(use_key(context.get(), files_));
    context_ = std::move(context);
    return {};
}

bool ServerTls::changed() const {
    return stamps() != seen_;
}

// All zero for a file that cannot be looked at.
ServerTls::Stamp ServerTls::stamp(const std::filesystem::path& path) {
    struct stat s{};
    if (::stat(path.c_str(), &s) != 0) return {};
    return {s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
}

ServerTls::Stamps ServerTls::stamps() const {
    return {stamp(files_.certificate_chain), stamp(files_.private_key)};
}

}  // namespace gb::http
