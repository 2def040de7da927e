// SPDX-License-Identifier: Apache-2.0
#include "cli/time_text.h"

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "base/clock.h"

namespace gb::cli {

Result<std::int64_t> parse_time_text(std::string_view text) {
    std::int64_t seconds = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (ec == std::errc() && end == text.data() + text.size() && seconds >= 0) return seconds;
    constexpr std::size_t kDate = 10;  // 2026-01-31
    auto time = parse_rfc3339(text.size() == kDate ? std::string(text) + "T00:00:00Z" : std::string(text));
    if (time && *time >= 0) return *time / 1000;
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is no time: write Unix seconds, 2026-01-31 or 2026-01-31T12:00:00Z", text));
}

}  // namespace gb::cli
