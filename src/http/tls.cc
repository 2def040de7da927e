#include "http/tls.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/file.h"

namespace gb::http {
namespace {

template <auto free>
struct Free {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

// Of what a key file held nothing stays in memory but the key.
struct Wiped {
    std::string text;
    ~Wiped() { OPENSSL_cleanse(text.data(), text.size()); }
};

Bio reading(const std::string& text) {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask at the terminal.
int no_passphrase(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

// RFC 7301 3.2: the server's preference. A client that offers neither speaks nothing that we do.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* offered,
                    unsigned offered_length, void*) {
    static constexpr unsigned char kOurs[] = "\x02h2\x08http/1.1";
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_length, kOurs, sizeof kOurs - 1, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

std::unexpected<Error> refuse(const std::filesystem::path& file, std::string_view what) {
    ERR_clear_error();
    return fail(ErrorCode::failed_precondition, fmt::format("{}: {}", file.string(), what));
}

Result<std::shared_ptr<SSL_CTX>> make_context() {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    // RFC 9113 9.2.2: with TLS 1.2 only suites with forward secrecy and authenticated encryption.
    if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
        ERR_clear_error();
        return fail(ErrorCode::internal, "OpenSSL cannot make a TLS server");
    }
    SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    // Clients keep their sessions in tickets; nothing is kept here.
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(context.get(), 1);
    SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
    return context;
}

Status use_chain(SSL_CTX* context, const std::filesystem::path& file) {
    GB_TRY_ASSIGN(const std::string text, read_file(file));
    const Bio bio = reading(text);
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
    const Bio bio = reading(text.text);
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
