// SPDX-License-Identifier: Apache-2.0
#include "http/tls_stream.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/error_tuple.h"

namespace gb::http::detail {
namespace {

constexpr unsigned kTurn = 16;  // operations that had not to wait before others get their turn

// OpenSSL's own socket BIO raises SIGPIPE, and keeps the number of a descriptor that may be another one's
// later.
TlsStream::Wire& wire_of(BIO* bio) {
    return *static_cast<TlsStream::Wire*>(BIO_get_data(bio));
}

int bio_result(BIO* bio, ssize_t n, int retry) {
    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return static_cast<int>(n);
}

int bio_read(BIO* bio, char* room, int size) {
    TlsStream::Wire& wire = wire_of(bio);
    if (wire.early_at < wire.early.size()) {
        const std::size_t count = wire.early.copy(room, static_cast<std::size_t>(size), wire.early_at);
        wire.early_at += count;
        return bio_result(bio, static_cast<ssize_t>(count), BIO_FLAGS_READ);
    }
    const ssize_t n =
        ::recv(wire.socket.native_handle(), room, static_cast<std::size_t>(size), MSG_DONTWAIT);
    return bio_result(bio, n, BIO_FLAGS_READ);
}

int bio_write(BIO* bio, const char* bytes, int size) {
    const ssize_t n = ::send(wire_of(bio).socket.native_handle(), bytes, static_cast<std::size_t>(size),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    return bio_result(bio, n, BIO_FLAGS_WRITE);
}

long bio_control(BIO*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
    static const std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> method = [] {
        BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "asio socket");
        BIO_meth_set_read(m, bio_read);
        BIO_meth_set_write(m, bio_write);
        BIO_meth_set_ctrl(m, bio_control);
        return std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)>(m, BIO_meth_free);
    }();
    return method.get();
}

// Which check of the other side's certificate failed, and nothing that it wrote itself.
std::string certificate_problem(SSL* ssl) {
    return std::string("the certificate was not accepted: ") +
           X509_verify_cert_error_string(SSL_get_verify_result(ssl));
}

boost::system::error_code reset() {
    return asio::error::make_error_code(asio::error::connection_reset);
}

}  // namespace

void TlsStream::Freer::operator()(SSL* ssl) const {
    SSL_free(ssl);
}

TlsStream::TlsStream(tcp::socket socket, SSL_CTX* context, Side side, std::string early)
    : wire_{std::move(socket), std::move(early)}, ssl_(SSL_new(context)) {
    BIO* bio = ssl_ ? BIO_new(socket_method()) : nullptr;
    if (bio == nullptr) {
        failed_ = true;
        return;
    }
    BIO_set_data(bio, &wire_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (side == Side::server)
        SSL_set_accept_state(ssl_.get());
    else
        SSL_set_connect_state(ssl_.get());
}

TlsStream::~TlsStream() = default;

Status TlsStream::expect_host(const std::string& host) {
    if (failed_) return fail(ErrorCode::resource_exhausted, "no memory for a TLS connection");
    X509_VERIFY_PARAM* check = SSL_get0_param(ssl_.get());
    std::array<unsigned char, 16> address{};
    const bool literal = ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
                         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
    // An empty name would check nothing; one with a zero byte would be another one to each reader.
    bool set = !host.empty() && host.find('\0') == std::string::npos;
    if (set && literal) {
        set = X509_VERIFY_PARAM_set1_ip_asc(check, host.c_str()) == 1;
    } else if (set) {
        X509_VERIFY_PARAM_set_hostflags(
            check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        set = X509_VERIFY_PARAM_set1_host(check, host.data(), host.size()) == 1 &&
              SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
    }
    ERR_clear_error();
    if (set) return {};
    failed_ = true;
    return fail(ErrorCode::invalid_argument, "not a name that a TLS server can have");
}

// What OpenSSL waits for; nothing when it can be asked again.
awaitable<boost::system::error_code> TlsStream::wait_for(int ssl_error, int error_number) {
    switch (ssl_error) {
        case SSL_ERROR_WANT_READ: {
            auto [ec] = co_await socket_.async_wait(tcp::socket::wait_read, kErrorTuple);
            co_return ec;
        }
        case SSL_ERROR_WANT_WRITE: {
            auto [ec] = co_await socket_.async_wait(tcp::socket::wait_write, kErrorTuple);
            co_return ec;
        }
        case SSL_ERROR_ZERO_RETURN:
            co_return asio::error::make_error_code(asio::error::eof);
        default:
            break;
    }
    failed_ = true;
    if (ssl_error == SSL_ERROR_SYSCALL && error_number != 0)
        co_return boost::system::error_code(error_number, boost::system::system_category());
    co_return reset();  // also the end of the connection without a proper end of TLS
}

// A peer that is as fast as we are must not keep the loop to itself.
awaitable<void> TlsStream::take_turns() {
    if (++turns_ % kTurn == 0) co_await asio::post(socket_.get_executor(), asio::use_awaitable);
}

awaitable<Status> TlsStream::handshake() {
    if (failed_) co_return fail(ErrorCode::resource_exhausted, "no memory for a TLS connection");
    for (;;) {
        ERR_clear_error();
        errno = 0;
        const int result = SSL_do_handshake(ssl_.get());
        if (result == 1) co_return Status{};
        const int error_number = errno;
        const int error = SSL_get_error(ssl_.get(), result);
        const unsigned long detail = ERR_peek_error();
        const auto ec = co_await wait_for(error, error_number);
        if (!ec) continue;
        failed_ = true;
        if (error == SSL_ERROR_SSL && ERR_GET_REASON(detail) == SSL_R_HTTP_REQUEST)
            co_return fail(ErrorCode::invalid_argument, "an HTTP request without TLS");
        if (error == SSL_ERROR_SSL && SSL_get_verify_result(ssl_.get()) != X509_V_OK)
            co_return fail(ErrorCode::failed_precondition, certificate_problem(ssl_.get()));
        const char* reason = error == SSL_ERROR_SSL ? ERR_reason_error_string(detail) : nullptr;
        co_return fail(ErrorCode::unavailable, reason != nullptr ? std::string(reason) : ec.message());
    }
}

bool TlsStream::chose_h2() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &length);
    return length == 2 && std::memcmp(name, "h2", 2) == 0;
}

Stream::Io TlsStream::read_some(asio::mutable_buffer room) {
    co_await take_turns();
    for (;;) {
        if (failed_ || !socket_.is_open()) co_return Io::value_type{reset(), 0};
        ERR_clear_error();
        errno = 0;
        std::size_t n = 0;
        const int result = SSL_read_ex(ssl_.get(), room.data(), room.size(), &n);
        if (result == 1) co_return Io::value_type{boost::system::error_code(), n};
        const int error_number = errno;
        const auto ec = co_await wait_for(SSL_get_error(ssl_.get(), result), error_number);
        if (ec) co_return Io::value_type{ec, 0};
    }
}

Stream::Io TlsStream::write_bytes(const char* data, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        co_await take_turns();
        if (failed_ || shut_ || !socket_.is_open()) co_return Io::value_type{reset(), done};
        ERR_clear_error();
        errno = 0;
        std::size_t n = 0;
        const int result = SSL_write_ex(ssl_.get(), data + done, size - done, &n);
        if (result == 1) {
            done += n;
            continue;
        }
        const int error_number = errno;
        const auto ec = co_await wait_for(SSL_get_error(ssl_.get(), result), error_number);
        if (ec) {
            failed_ = true;  // OpenSSL waits for the rest of this record, and nobody will bring it
            co_return Io::value_type{ec, done};
        }
    }
    co_return Io::value_type{boost::system::error_code(), done};
}

Stream::Io TlsStream::write(asio::const_buffer bytes) {
    return write_bytes(static_cast<const char*>(bytes.data()), bytes.size());
}

// Small pieces share a record: each costs 22 bytes and a system call.
Stream::Io TlsStream::write(std::span<const asio::const_buffer> pieces) {
    std::size_t total = 0, held = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto* data = static_cast<const char*>(pieces[i].data());
        std::size_t size = pieces[i].size();
        total += size;
        const bool last = i + 1 == pieces.size();
        while (size > 0) {
            if (held == 0 && (last || size >= kRecord)) {
                const std::size_t direct = last ? size : size / kRecord * kRecord;
                auto [ec, n] = co_await write_bytes(data, direct);
                if (ec) co_return Io::value_type{ec, 0};
                data += direct;
                size -= direct;
                continue;
            }
            if (!gathered_) gathered_ = std::make_unique_for_overwrite<std::array<char, kRecord>>();
            const std::size_t part = std::min(size, kRecord - held);
            std::memcpy(gathered_->data() + held, data, part);
            held += part;
            data += part;
            size -= part;
            if (held < kRecord) continue;
            auto [ec, n] = co_await write_bytes(gathered_->data(), held);
            if (ec) co_return Io::value_type{ec, 0};
            held = 0;
        }
    }
    auto [ec, n] = co_await write_bytes(gathered_ ? gathered_->data() : nullptr, held);
    co_return Io::value_type{ec, ec ? 0 : total};
}

awaitable<void> TlsStream::shutdown_send() {
    if (failed_ || shut_ || !socket_.is_open()) co_return;
    shut_ = true;
    for (;;) {
        ERR_clear_error();
        errno = 0;
        // 0 is as good as 1: ours is sent, the other side's has not come yet.
        const int result = SSL_shutdown(ssl_.get());
        if (result >= 0) break;
        const int error_number = errno;
        const int error = SSL_get_error(ssl_.get(), result);
        if (error != SSL_ERROR_WANT_WRITE || co_await wait_for(error, error_number)) co_return;
        if (!socket_.is_open()) co_return;
    }
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

// Tickets of TLS 1.3 that wait are taken in passing.
bool TlsStream::quiet() {
    if (failed_ || shut_ || !socket_.is_open()) return false;
    ERR_clear_error();
    char c = 0;
    std::size_t n = 0;
    const int result = SSL_peek_ex(ssl_.get(), &c, 1, &n);
    if (result == 1) return false;
    const bool waits = SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
    if (!waits) failed_ = true;
    return waits;
}

void TlsStream::close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace gb::http::detail
