// SPDX-License-Identifier: Apache-2.0
// TLS over a TCP socket, either side. OpenSSL reads and writes the socket itself and says what it waits for.
// Internal to this folder; others use tls_handshake.h.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/stream.h"

using SSL = struct ssl_st;  // OpenSSL's own declarations
using SSL_CTX = struct ssl_ctx_st;

namespace gb::http::detail {

class TlsStream final : public Stream {
  public:
    enum class Side { server, client };
    // `early`: bytes of the other side that were read from the socket already.
    TlsStream(tcp::socket socket, SSL_CTX* context, Side side = Side::server, std::string early = {});
    ~TlsStream() override;

    // Of a client, before the handshake: the name or address that is asked for and that the certificate must be
    // for.
    Status expect_host(const std::string& host);

    // invalid_argument when the client speaks HTTP without TLS: it can still be told so on the socket. Has no
    // limit of time; close() ends it.
    awaitable<Status> handshake();
    [[nodiscard]] bool chose_h2() const;  // after the handshake

    Io read_some(asio::mutable_buffer room) override;
    Io write(asio::const_buffer bytes) override;
    Io write(std::span<const asio::const_buffer> pieces) override;
    awaitable<void> shutdown_send() override;
    void close() override;
    [[nodiscard]] bool quiet() override;
    tcp::socket& socket() override { return wire_.socket; }
    [[nodiscard]] bool plain() const override { return false; }

    // What OpenSSL reads from and writes to.
    struct Wire {
        tcp::socket socket;
        std::string early;
        std::size_t early_at = 0;
    };

  private:
    static constexpr std::size_t kRecord = 16384;  // the largest of TLS
    struct Freer {
        void operator()(SSL* ssl) const;
    };
    awaitable<boost::system::error_code> wait_for(int ssl_error, int error_number);
    Io write_bytes(const char* data, std::size_t size);
    awaitable<void> take_turns();

    Wire wire_;
    tcp::socket& socket_ = wire_.socket;
    std::unique_ptr<SSL, Freer> ssl_;
    std::unique_ptr<std::array<char, kRecord>> gathered_;
    unsigned turns_ = 0;
    bool failed_ = false;  // OpenSSL forbids further use
    bool shut_ = false;
};

}  // namespace gb::http::detail
