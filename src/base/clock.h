// SPDX-License-Identifier: Apache-2.0
// Time as text and as numbers. All wall-clock values are UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gb {

std::int64_t now_ms();            // milliseconds since 1970, wall clock
std::int64_t monotonic_ms();      // never goes back, starts anywhere
std::int64_t monotonic_us();
std::string rfc3339(std::int64_t unix_ms);                         // 2026-01-02T03:04:05.678Z
std::optional<std::int64_t> parse_rfc3339(std::string_view text);  // to milliseconds; offsets understood
std::string duration_text(std::int64_t ms);  // for people: "30 days", "12 hours", "10 min", "90 s"
// Of a setting: a whole number and s, m, h or d ("90s", "10m"); to milliseconds. Nothing when it is not that, or 0.
std::optional<std::int64_t> parse_duration(std::string_view text);

}  // namespace gb
