// SPDX-License-Identifier: Apache-2.0
// A stream that counts what goes through it.
#pragma once

#include <cstdint>
#include <memory>

#include <boost/asio/use_awaitable.hpp>

#include "http/stream.h"

namespace gb::egress {

struct ByteCounters {
    std::uint64_t up = 0, down = 0;  // bytes written, bytes read
};

class CountingStream final : public http::Stream {
  public:
    CountingStream(std::shared_ptr<http::Stream> inner, std::shared_ptr<ByteCounters> counters)
        : inner_(std::move(inner)), counters_(std::move(counters)) {}

    Io read_some(http::asio::mutable_buffer room) override {
        auto [ec, n] = co_await inner_->read_some(room);
        counters_->down += n;
        co_return Io::value_type{ec, n};
    }
    Io write(http::asio::const_buffer bytes) override {
        auto [ec, n] = co_await inner_->write(bytes);
        counters_->up += n;
        co_return Io::value_type{ec, n};
    }
    Io write(std::span<const http::asio::const_buffer> pieces) override {
        auto [ec, n] = co_await inner_->write(pieces);
        counters_->up += n;
        co_return Io::value_type{ec, n};
    }
    http::awaitable<void> shutdown_send() override { return inner_->shutdown_send(); }
    void close() override { inner_->close(); }
    [[nodiscard]] bool quiet() override { return inner_->quiet(); }
    http::tcp::socket& socket() override { return inner_->socket(); }
    // Who goes past it counts for itself.
    [[nodiscard]] bool plain() const override { return inner_->plain(); }

  private:
    std::shared_ptr<http::Stream> inner_;
    std::shared_ptr<ByteCounters> counters_;
};

}  // namespace gb::egress
