// TLS over a TCP socket, the server's side. OpenSSL reads and writes the socket itself and says what it waits
// for. Internal to this folder.
#pragma once

#include <array>
#include <memory>

#include "base/result.h"
#include "http/stream.h"

using SSL = struct ssl_st;  // OpenSSL's own declarations
using SSL_CTX = struct ssl_ctx_st;

namespace gb::http::detail {

class TlsStream final : public Stream {
  public:
    TlsStream(tcp::socket socket, SSL_CTX* context);
    ~TlsStream() override;

    // invalid_argument when the client speaks HTTP without TLS: it can still be told so on the socket. Has no
    // limit of time; close() ends it.
    awaitable<Status> handshake();
    [[nodiscard]] bool chose_h2() const;  // after the handshake

    Io read_some(asio::mutable_buffer room) override;
    Io write(asio::const_buffer bytes) override;
    Io write(std::span<const asio::const_buffer> pieces) override;
    awaitable<void> shutdown_send() override;
    void close() override;
    tcp::socket& socket() override { return socket_; }
    [[nodiscard]] bool plain() const override { return false; }

  private:
    static constexpr std::size_t kRecord = 16384;  // the largest of TLS
    struct Freer {
        void operator()(SSL* ssl) const;
    };
    awaitable<boost::system::error_code> wait_for(int ssl_error, int error_number);
    Io write_bytes(const char* data, std::size_t size);
    awaitable<void> take_turns();

    tcp::socket socket_;
    std::unique_ptr<SSL, Freer> ssl_;
    std::unique_ptr<std::array<char, kRecord>> gathered_;
    unsigned turns_ = 0;
    bool failed_ = false;  // OpenSSL forbids further use
    bool shut_ = false;
};

}  // namespace gb::http::detail
