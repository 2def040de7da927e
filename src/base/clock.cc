// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <charconv>
#include <ctime>

#include <fmt/format.h>

namespace gb {

std::int64_t now_ms() {
    timespec ts{};
    ::clock_gettime(CLOCK_REALTIME, &ts);
    return std::int64_t{ts.tv_sec} * 1000 + ts.tv_nsec / 1'000'000;
}

std::int64_t monotonic_us() {
    timespec ts{};
    ::clock_gettime(CLOCK_MONOTONIC, &ts);
    return std::int64_t{ts.tv_sec} * 1'000'000 + ts.tv_nsec / 1000;
}

std::int64_t monotonic_ms() {
    return monotonic_us() / 1000;
}

std::string rfc3339(std::int64_t unix_ms) {
    std::int64_t seconds = unix_ms / 1000;
    std::int64_t rest = unix_ms % 1000;
    if (rest < 0) {
        rest += 1000;
        --seconds;
    }
    std::time_t t = seconds;
    std::tm tm{};
    ::gmtime_r(&t, &tm);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                       tm.tm_hour, tm.tm_min, tm.tm_sec, rest);
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
    auto number = [&](std::size_t at, std::size_t length) -> std::optional<int> {
        if (at + length > text.size()) return std::nullopt;
        int value = 0;
        for (char c : text.substr(at, length)) {
            if (c < '0' || c > '9') return std::nullopt;
            value = value * 10 + (c - '0');
        }
        return value;
    };
    auto is = [&](std::size_t at, std::string_view set) {
        return at < text.size() && set.find(text[at]) != std::string_view::npos;
    };
    auto year = number(0, 4), month = number(5, 2), day = number(8, 2);
    auto hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
    if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
    if (!is(4, "-") || !is(7, "-") || !is(10, "Tt ") || !is(13, ":") || !is(16, ":")) return std::nullopt;
    if (*month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 || *second > 60)
        return std::nullopt;
    std::size_t at = 19;
    int millis = 0;
    if (is(at, ".")) {
        int digits = 0;
        for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits)
            if (digits < 3) millis = millis * 10 + (text[at] - '0');
        if (digits == 0) return std::nullopt;
        for (; digits < 3; ++digits) millis *= 10;
    }
    std::int64_t offset_minutes = 0;
    if (is(at, "Zz")) {
        ++at;
    } else if (is(at, "+- ")) {  // a '+' that a query string turned into a blank still means plus
        auto oh = number(at + 1, 2), om = number(at + 4, 2);
        if (!oh || !om || !is(at + 3, ":")) return std::nullopt;
        offset_minutes = (text[at] == '-' ? -1 : 1) * (*oh * 60 + *om);
        at += 6;
    } else {
        return std::nullopt;
    }
    if (at != text.size()) return std::nullopt;
    std::tm tm{};
    tm.tm_year = *year - 1900;
    tm.tm_mon = *month - 1;
    tm.tm_mday = *day;
    tm.tm_hour = *hour;
    tm.tm_min = *minute;
    tm.tm_sec = *second;
    return (std::int64_t{::timegm(&tm)} - offset_minutes * 60) * 1000 + millis;
}

std::string duration_text(std::int64_t ms) {
    constexpr std::int64_t kMinuteMs = 60'000, kHourMs = 60 * kMinuteMs, kDayMs = 24 * kHourMs;
    if (ms >= kDayMs) return fmt::format("{:.6g} days", static_cast<double>(ms) / kDayMs);
    if (ms >= kHourMs) return fmt::format("{:.6g} hours", static_cast<double>(ms) / kHourMs);
    if (ms >= 2 * kMinuteMs) return fmt::format("{:.3g} min", static_cast<double>(ms) / kMinuteMs);
    return fmt::format("{:.6g} s", static_cast<double>(ms) / 1000);
}

std::optional<std::int64_t> parse_duration(std::string_view text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    auto [unit, bad] = std::from_chars(text.data(), end, value);
    if (bad != std::errc() || unit + 1 != end || value <= 0 || value > 1'000'000) return std::nullopt;
    switch (*unit) {
        case 's':
            return value * 1000;
        case 'm':
            return value * 60'000;
        case 'h':
            return value * 3'600'000;
        case 'd':
            return value * 86'400'000;
        default:
            return std::nullopt;
    }
}

}  // namespace gb
