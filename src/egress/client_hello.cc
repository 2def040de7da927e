// SPDX-License-Identifier: Apache-2.0
#include "egress/client_hello.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace gb::egress {
namespace {

constexpr unsigned kEncryptedHello = 0xfe0d;
constexpr char kHandshakeRecord = 0x16;

// Takes lists apart whose lengths stand before them, big-endian.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    [[nodiscard]] bool empty() const { return rest_.empty(); }
    std::optional<unsigned> number(std::size_t bytes) {
        if (rest_.size() < bytes) return std::nullopt;
        unsigned out = 0;
        for (char c : rest_.substr(0, bytes)) out = out << 8 | static_cast<unsigned char>(c);
        rest_.remove_prefix(bytes);
        return out;
    }
    std::optional<std::string_view> text(std::size_t length_bytes) {
        const auto length = number(length_bytes);
        if (!length || rest_.size() < *length) return std::nullopt;
        const std::string_view out = rest_.substr(0, *length);
        rest_.remove_prefix(*length);
        return out;
    }

  private:
    std::string_view rest_;
};

std::optional<std::string_view> extension(SSL* ssl, unsigned type) {
    const unsigned char* data = nullptr;
    std::size_t size = 0;
    if (SSL_client_hello_get0_ext(ssl, type, &data, &size) != 1) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(data), size);
}

// Exactly one name, of the only kind there is; false otherwise.
bool read_sni(std::string_view bytes, ClientHello& out) {
    Reader outer(bytes);
    const auto list = outer.text(2);
    if (!list || !outer.empty()) return false;
    Reader names(*list);
    const auto kind = names.number(1);
    const auto name = names.text(2);
    if (kind != 0U || !name || name->empty() || !names.empty()) return false;
    out.sni = std::string(*name);
    return true;
}

bool read_alpn(std::string_view bytes, ClientHello& out) {
    Reader outer(bytes);
    const auto list = outer.text(2);
    if (!list || !outer.empty() || list->empty()) return false;
    for (Reader names(*list); !names.empty();) {
        const auto name = names.text(1);
        if (!name || name->empty()) return false;
        out.alpn.emplace_back(*name);
    }
    return true;
}

// Called when OpenSSL has a whole hello; always ends the handshake.
int on_hello(SSL* ssl, int* alert, void*) {
    auto& out = *static_cast<ClientHello*>(SSL_get_app_data(ssl));
    const auto sni = extension(ssl, TLSEXT_TYPE_server_name);
    const auto alpn = extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation);
    out.ech = extension(ssl, kEncryptedHello).has_value();
    const bool good = (!sni || read_sni(*sni, out)) && (!alpn || read_alpn(*alpn, out));
    out.state = good ? ClientHello::State::hello : ClientHello::State::malformed;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

// OpenSSL keeps only extensions that it knows; this one it has to be told of.
int know_extension(SSL*, unsigned, unsigned, const unsigned char*, std::size_t, X509*, std::size_t, int*,
                   void*) {
    return 1;
}

SSL_CTX* reading_context() {
    static const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context = [] {
        SSL_CTX* made = SSL_CTX_new(TLS_server_method());
        if (made != nullptr) {
            SSL_CTX_set_client_hello_cb(made, on_hello, nullptr);
            if (SSL_CTX_add_custom_ext(made, kEncryptedHello, SSL_EXT_CLIENT_HELLO, nullptr, nullptr, nullptr,
                                       know_extension, nullptr) != 1) {
                SSL_CTX_free(made);
                made = nullptr;
            }
        }
        return std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>(made, SSL_CTX_free);
    }();
    return context.get();
}

}  // namespace

struct ClientHelloReader::Ssl {
    SSL* ssl = nullptr;
    BIO* in = nullptr;  // owned by ssl
    ~Ssl() { SSL_free(ssl); }
};

ClientHelloReader::ClientHelloReader() : ssl_(std::make_unique<Ssl>()) {
    SSL_CTX* context = reading_context();
    ssl_->ssl = context != nullptr ? SSL_new(context) : nullptr;
    BIO* in = BIO_new(BIO_s_mem());
    BIO* out = BIO_new(BIO_s_null());
    if (ssl_->ssl == nullptr || in == nullptr || out == nullptr) {
        BIO_free(in);
        BIO_free(out);
        found_.state = ClientHello::State::malformed;  // without memory nobody gets through
        return;
    }
    BIO_set_mem_eof_return(in, -1);  // its end is only where the bytes end for now
    SSL_set_bio(ssl_->ssl, in, out);
    ssl_->in = in;
    SSL_set_accept_state(ssl_->ssl);
}

ClientHelloReader::~ClientHelloReader() = default;

const ClientHello& ClientHelloReader::feed(std::string_view bytes) {
    using State = ClientHello::State;
    if (found_.state != State::needs_more || bytes.empty()) return found_;
    // TLS begins with a handshake record; OpenSSL would also take the hello of SSL 2.
    if (fed_ == 0 && bytes.front() != kHandshakeRecord) {
        found_.state = State::not_tls;
        return found_;
    }
    bytes = bytes.substr(0, kLargestHello - fed_);
    fed_ += bytes.size();
    ERR_clear_error();
    SSL_set_app_data(ssl_->ssl, &found_);
    const bool taken =
        BIO_write(ssl_->in, bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size());
    const int result = taken ? SSL_do_handshake(ssl_->ssl) : -1;
    const bool waits = taken && SSL_get_error(ssl_->ssl, result) == SSL_ERROR_WANT_READ;
    if (found_.state == State::needs_more && (!waits || fed_ == kLargestHello))
        found_.state = State::malformed;
    ERR_clear_error();
    return found_;
}

ClientHello read_client_hello(std::string_view bytes) {
    ClientHelloReader reader;
    return reader.feed(bytes);
}

}  // namespace gb::egress
