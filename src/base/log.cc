// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include <fmt/format.h>

#include "base/clock.h"

namespace gb::log {
namespace {

std::atomic<Level> g_least{Level::info};
std::atomic<int> g_fd{2};

constexpr std::string_view name(Level level) {
    switch (level) {
        case Level::debug:
            return "debug";
        case Level::info:
            return "info";
        case Level::warn:
            return "warn";
        case Level::error:
            return "error";
    }
    return "info";
}

// Length of the valid UTF-8 sequence at the start of `s`, 0 if there is none (RFC 3629).
std::size_t utf8_length(std::string_view s) {
    auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
    auto tail = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
    unsigned b = at(0);
    if (b < 0x80) return 1;
    if (b >= 0xC2 && b <= 0xDF) return tail(1) ? 2 : 0;
    if (b >= 0xE0 && b <= 0xEF) {
        if (!tail(1) || !tail(2)) return 0;
        if ((b == 0xE0 && at(1) < 0xA0) || (b == 0xED && at(1) > 0x9F)) return 0;
        return 3;
    }
    if (b >= 0xF0 && b <= 0xF4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if ((b == 0xF0 && at(1) < 0x90) || (b == 0xF4 && at(1) > 0x8F)) return 0;
        return 4;
    }
    return 0;
}

}  // namespace

std::string json_quote(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        auto c = static_cast<unsigned char>(text[0]);
        std::size_t used = 1;
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(text[0]);
        } else if (c == '\n') {
            out += "\\n";
        } else if (c < 0x20 || c == 0x7F) {
            out += fmt::format("\\u{:04x}", c);
        } else if (std::size_t length = utf8_length(text); length > 0) {
            out.append(text.substr(0, length));
            used = length;
        } else {
            out += "\\ufffd";
        }
        text.remove_prefix(used);
    }
    out.push_back('"');
    return out;
}

void set_level(Level least) {
    g_least = least;
}

void set_output(int fd) {
    g_fd = fd;
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
    if (level < g_least.load(std::memory_order_relaxed)) return;
    std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":{})", rfc3339(now_ms()), name(level),
                                   json_quote(message));
    for (const Field& field : fields) {
        line += ",";
        line += json_quote(field.key);
        line += ":";
        line += field.raw ? field.value : json_quote(field.value);
    }
    line += "}\n";
    // One write a line keeps lines of different threads apart. A log that cannot be written is not worth dying for.
    [[maybe_unused]] ssize_t n = ::write(g_fd.load(std::memory_order_relaxed), line.data(), line.size());
}

}  // namespace gb::log
