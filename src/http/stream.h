// SPDX-License-Identifier: Apache-2.0
// A connection's bytes both ways, whatever carries them: TCP, or TLS over it. One read and one write at a
// time, which may be under way together. One executor; not thread-safe. The functions return Asio's own pair
// of an error and a count, so that plain TCP costs nothing more than its socket does.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace gb::http {

namespace asio = boost::asio;
using asio::awaitable;
using tcp = asio::ip::tcp;

class Stream {
  public:
    using Io = awaitable<std::tuple<boost::system::error_code, std::size_t>>;

    virtual ~Stream() = default;
    // At least one byte; asio::error::eof when the other side has ended its direction properly. May be
    // cancelled and called again: nothing is lost.
    virtual Io read_some(asio::mutable_buffer room) = 0;
    // All of it, or an error; after one (a cancellation too) nothing can be written any more. The bytes, and
    // the list of pieces, stay the caller's and must last until it is done.
    virtual Io write(asio::const_buffer bytes) = 0;
    virtual Io write(std::span<const asio::const_buffer> pieces) = 0;
    // The end of our direction; the other one goes on. Over TLS the peer learns that nothing was cut off.
    virtual awaitable<void> shutdown_send() = 0;
    // At once, without a proper end; what is under way fails.
    virtual void close() = 0;
    // Whether the stream is open and nothing waits to be read: what must hold of a connection that is kept for
    // later. For streams that nobody reads at the moment.
    [[nodiscard]] virtual bool quiet() = 0;
    // For options, addresses and waiting.
    virtual tcp::socket& socket() = 0;
    // Whether the bytes on the socket are those of the stream.
    [[nodiscard]] virtual bool plain() const = 0;
};

class TcpStream final : public Stream {
  public:
    explicit TcpStream(tcp::socket socket) : socket_(std::move(socket)) {}
    Io read_some(asio::mutable_buffer room) override;
    Io write(asio::const_buffer bytes) override;
    Io write(std::span<const asio::const_buffer> pieces) override;
    awaitable<void> shutdown_send() override;
    void close() override;
    [[nodiscard]] bool quiet() override;
    tcp::socket& socket() override { return socket_; }
    [[nodiscard]] bool plain() const override { return true; }

  private:
    tcp::socket socket_;
};

}  // namespace gb::http
