// SPDX-License-Identifier: Apache-2.0
// Makes any bytes valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gb::interpreter {

// Each byte that is not part of a well-formed sequence (Unicode 15, table 3-7) becomes U+FFFD.
std::string scrub_utf8(std::string text);

// How many bytes at the end are the beginning of a sequence whose rest is missing: 0 to 3.
std::size_t unfinished_utf8(std::string_view text);

}  // namespace gb::interpreter
