// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/utf8.h"

#include <cstddef>
#include <string_view>

namespace gb::interpreter {
namespace {

// Length of the well-formed sequence at `at`, 0 when there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) -> unsigned {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    auto trail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return trail(1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
        const unsigned high = lead == 0xED ? 0x9F : 0xBF;  // no surrogates
        return byte(1) >= low && byte(1) <= high && trail(2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
        const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
        return byte(1) >= low && byte(1) <= high && trail(2) && trail(3) ? 4 : 0;
    }
    return 0;
}

}  // namespace

std::string scrub_utf8(std::string text) {
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t length = sequence_length(text, at);
        if (length == 0) break;
        at += length;
    }
    if (at == text.size()) return text;  // the usual case: nothing copied
    std::string clean = text.substr(0, at);
    while (at < text.size()) {
        std::size_t length = sequence_length(text, at);
        clean += length == 0 ? std::string_view("\xEF\xBF\xBD") : std::string_view(text).substr(at, length);
        at += length == 0 ? 1 : length;
    }
    return clean;
}

std::size_t unfinished_utf8(std::string_view text) {
    for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const unsigned byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xC0U) == 0x80U) continue;  // a trail
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        return length > back ? back : 0;
    }
    return 0;
}

}  // namespace gb::interpreter
