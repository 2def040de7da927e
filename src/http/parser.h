// SPDX-License-Identifier: Apache-2.0
// Beast's HTTP/1 parser used without its I/O: bytes in, heads and body pieces out. Internal to this folder;
// the only header that sees Beast.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/result.h"
#include "http/message.h"

namespace gb::http::detail {

namespace beast = boost::beast;

// Feeds one message from `input`, a buffer that the owner fills from its socket. What the parser has used is
// erased.
template <bool is_request>
class MessageParser {
  public:
    explicit MessageParser(std::size_t max_header_bytes) : max_header_bytes_(max_header_bytes) {
        parser_.header_limit(static_cast<std::uint32_t>(max_header_bytes));
        parser_.body_limit(boost::none);
    }

    // True when the head is complete; false when more input is needed.
    Result<bool> parse_head(std::string& input) {
        while (!parser_.is_header_done()) {
            if (input.empty()) return false;
            beast::error_code ec;
            std::size_t used = parser_.put(boost::asio::buffer(input), ec);
            input.erase(0, used);
            if (ec == beast::http::error::need_more) return false;
            if (ec == beast::http::error::header_limit)
                return fail(ErrorCode::too_large, "request head is larger than allowed");
            if (ec) return fail(ErrorCode::invalid_argument, "malformed HTTP message: " + ec.message());
        }
        // Taken off as the body comes. 0 in the head itself, or no length: Beast knows.
        if (!left_ && !parser_.is_done() && !parser_.chunked() && parser_.content_length())
            left_ = *parser_.content_length();
        return true;
    }

    // A body of known length goes past Beast, without a copy: where its next bytes are to be read to while
    // none of them is in `input`. Empty for every other body.
    std::span<char> body_room(const std::string& input) {
        if (left_.value_or(0) == 0 || !input.empty() || at_eof_) return {};
        return {piece_.data(), static_cast<std::size_t>(std::min<std::uint64_t>(*left_, piece_.size()))};
    }
    // That many bytes were read there; they are the next piece.
    std::string_view took(std::size_t count) {
        *left_ -= count;
        return {piece_.data(), count};
    }

    // The next piece of the body: empty while more input is needed and at the end (see done()).
    Result<std::string_view> parse_body(std::string& input) {
        if (left_) {
            const std::size_t count =
                static_cast<std::size_t>(std::min<std::uint64_t>({*left_, input.size(), piece_.size()}));
            if (count == 0 && *left_ > 0 && at_eof_)
                return fail(ErrorCode::unavailable, "connection closed in the middle of a message");
            std::copy_n(input.data(), count, piece_.data());
            input.erase(0, count);
            return took(count);
        }
        auto& body = parser_.get().body();
        body.data = piece_.data();
        body.size = piece_.size();
        body.more = true;
        while (!parser_.is_done() && body.size == piece_.size()) {
            if (input.empty() && !at_eof_) break;
            beast::error_code ec;
            if (input.empty()) {
                parser_.put_eof(ec);
                if (ec) return fail(ErrorCode::unavailable, "connection closed in the middle of a message");
                break;
            }
            if (may_be_shown(input)) {
                std::size_t used = parser_.put(boost::asio::buffer(input), ec);
                input.erase(0, used);
            } else {
                ec = beast::http::error::need_more;
            }
            if (ec == beast::http::error::need_buffer) break;
            if (ec == beast::http::error::need_more) {
                if (at_eof_)
                    return fail(ErrorCode::unavailable, "connection closed in the middle of a message");
                // What is left is the header of a chunk, or the trailers, without their end.
                in_chunk_header_ = !input.empty();
                if (input.size() > max_header_bytes_)
                    return fail(ErrorCode::too_large, "chunk header is larger than allowed");
                break;
            }
            in_chunk_header_ = false;
            if (ec) return fail(ErrorCode::invalid_argument, "malformed HTTP body: " + ec.message());
        }
        return std::string_view(piece_.data(), piece_.size() - body.size);
    }

    // What is left of a body whose length the head says, when nothing of it waits here: its owner may take it past the
    // parser, and says how much.
    [[nodiscard]] std::uint64_t bare(const std::string& input) const { return left_ && input.empty() ? *left_ : 0; }
    void took_bare(std::uint64_t count) { *left_ -= count; }

    void set_eof() { at_eof_ = true; }
    void skip_body() { parser_.skip(true); }  // answers to HEAD, 204, 304: call before parse_head
    [[nodiscard]] bool done() { return left_ ? *left_ == 0 : parser_.is_done(); }
    [[nodiscard]] bool keep_alive() const { return parser_.get().keep_alive(); }
    // A transfer coding other than chunked: the parser would take the message to have no body.
    [[nodiscard]] bool unknown_framing() const {
        return parser_.get().count(beast::http::field::transfer_encoding) > 0 && !parser_.chunked();
    }
    [[nodiscard]] const auto& message() const { return parser_.get(); }

    [[nodiscard]] Headers headers() const {
        Headers out;
        for (const auto& field : parser_.get())
            out.add(std::string(field.name_string().data(), field.name_string().size()),
                    std::string(field.value().data(), field.value().size()));
        return out;
    }

  private:
    // Beast 1.81 asserts that five bytes are there when it looks at the beginning of a last chunk ("0", CR LF
    // and the end of the trailers) again. A peer may send them one by one.
    [[nodiscard]] bool may_be_shown(std::string_view input) const {
        return !in_chunk_header_ || input.size() >= 5 || !input.starts_with('0');
    }

    std::size_t max_header_bytes_;
    bool in_chunk_header_ = false;
    beast::http::parser<is_request, beast::http::buffer_body> parser_;
    std::array<char, std::size_t{128} * 1024> piece_;
    std::optional<std::uint64_t> left_;  // of a body whose length the head says
    bool at_eof_ = false;
};

}  // namespace gb::http::detail
