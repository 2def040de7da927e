// SPDX-License-Identifier: Apache-2.0
#include "http/connect.h"

#include <fmt/format.h>

#include "base/error_table.h"
#include "base/log.h"

namespace gb::http {

std::string envelope(std::uint8_t flags, std::string_view payload) {
    std::string out;
    out.reserve(payload.size() + 5);
    auto size = static_cast<std::uint32_t>(payload.size());
    out.push_back(static_cast<char>(flags));
    for (int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>((size >> shift) & 0xff));
    out.append(payload);
    return out;
}

std::string connect_error_body(const Error& error) {
    return fmt::format(R"({{"code":"{}","message":{}}})", connect_name(error.code), log::json_quote(error.message));
}

std::string end_stream() {
    return envelope(kEnvelopeEndStream, "{}");
}

std::string end_stream(const Error& error) {
    return envelope(kEnvelopeEndStream, fmt::format(R"({{"error":{}}})", connect_error_body(error)));
}

Result<std::optional<EnvelopeReader::Frame>> EnvelopeReader::next() {
    if (buffer_.size() < 5) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = 1; i < 5; ++i) size = (size << 8) | static_cast<unsigned char>(buffer_[i]);
    if (size > max_payload_)
        return fail(ErrorCode::too_large, fmt::format("message of {} bytes, {} allowed", size, max_payload_));
    if (buffer_.size() < 5 + size) return std::nullopt;
    Frame frame{static_cast<std::uint8_t>(buffer_[0]), buffer_.substr(5, size)};
    buffer_.erase(0, 5 + size);
    return frame;
}

}  // namespace gb::http
