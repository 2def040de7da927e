// SPDX-License-Identifier: Apache-2.0
// Framing of the Connect protocol over HTTP/1.1 (connectrpc.com "Protocol reference"): envelopes of streams, error
// bodies, the end-of-stream message. Pure functions; nothing here reads or writes a socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::http {

inline constexpr std::uint8_t kEnvelopeCompressed = 0x01;
inline constexpr std::uint8_t kEnvelopeEndStream = 0x02;

std::string envelope(std::uint8_t flags, std::string_view payload);
std::string end_stream();                    // {"…"} without an error
std::string end_stream(const Error& error);  // with one
std::string connect_error_body(const Error& error);

// Takes a byte stream apart into envelopes.
class EnvelopeReader {
  public:
    struct Frame {
        std::uint8_t flags;
        std::string payload;
    };
    explicit EnvelopeReader(std::size_t max_payload) : max_payload_(max_payload) {}
    void feed(std::string_view bytes) { buffer_.append(bytes); }
    // The next whole frame, nothing when more bytes are needed, too_large when a frame announces more than allowed.
    Result<std::optional<Frame>> next();
    [[nodiscard]] bool empty() const { return buffer_.empty(); }

  private:
    std::size_t max_payload_;
    std::string buffer_;
};

}  // namespace gb::http
