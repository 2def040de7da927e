// Makes any bytes valid UTF-8.
#pragma once

#include <string>

namespace gb::interpreter {

// Each byte that is not part of a well-formed sequence (Unicode 15, table 3-7) becomes U+FFFD.
std::string scrub_utf8(std::string text);

}  // namespace gb::interpreter
