// SPDX-License-Identifier: Apache-2.0
// Reads the head of a message the way the strictest reader would (RFC 9112 2.2, 3, 5, 6.3), before a parser
// that forgives sees it. For relays: what two readers could understand differently is how requests are
// smuggled. Pure.
//
// Refused: a CR, LF or zero byte anywhere but in the CR LF of a line's end, other control bytes, folded
// lines, names that are no tokens (white space before the colon), start lines of another form than HTTP/1.0
// and 1.1, Content-Length with Transfer-Encoding, more than one of either, lengths that are no plain numbers,
// codings other than chunked, and codings in HTTP/1.0.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace gb::http {

// RFC 9110 5.6.2: what names of headers and methods are made of.
bool is_token(std::string_view text);
// RFC 9110 5.5: no control byte but a tab.
bool is_field_value(std::string_view text);

// One head. Not thread-safe.
class HeadCheck {
  public:
    enum class Kind { request, answer };
    explicit HeadCheck(Kind kind) : kind_(kind) {}

    // `input` begins with the head and has only grown since the last call: nothing may be taken from it before the
    // head is whole. True when all of it is there and good; too_large when it is longer than `most` bytes;
    // invalid_argument says which rule is broken, and nothing of the head.
    Result<bool> look(std::string_view input, std::size_t most);

  private:
    [[nodiscard]] Status check_line(std::string_view line);
    [[nodiscard]] Status check_field(std::string_view line);

    Kind kind_;
    std::size_t seen_ = 0;  // lines before this are good
    std::size_t scanned_ = 0;
    bool start_line_ = true, old_version_ = false, has_length_ = false, has_coding_ = false;
};

}  // namespace gb::http
