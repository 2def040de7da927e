// SPDX-License-Identifier: Apache-2.0
#include "api/parameters.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace gb::api {

std::unexpected<Error> bad_parameter(std::string_view name, std::string_view wanted) {
    return fail(ErrorCode::invalid_argument, fmt::format("validation error: parameter '{}' must be {}", name, wanted));
}

Result<std::optional<std::int64_t>> number_parameter(const http::Target& target, std::string_view name,
                                                     std::int64_t least, std::int64_t most) {
    const std::string* text = target.find(name);
    if (text == nullptr) return std::nullopt;
    std::int64_t value = 0;
    auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (ec != std::errc() || end != text->data() + text->size() || value < least || value > most)
        return bad_parameter(name, fmt::format("a number from {} to {}", least, most));
    return value;
}

std::vector<std::string> list_parameter(const http::Target& target, std::string_view name) {
    std::vector<std::string> out;
    for (const auto& [key, value] : target.query) {
        if (key != name) continue;
        for (std::string_view rest = value; !rest.empty();) {
            const std::string_view item = rest.substr(0, rest.find(','));
            rest.remove_prefix(std::min(rest.size(), item.size() + 1));
            if (!item.empty()) out.emplace_back(item);
        }
    }
    return out;
}

Result<std::size_t> page_limit(const http::Target& target) {
    GB_TRY_ASSIGN(auto limit, number_parameter(target, "limit", 1, 100));
    return static_cast<std::size_t>(limit.value_or(100));
}

Result<TimeWindow> time_window(const http::Target& target, std::int64_t now_ms, std::int64_t default_ms) {
    constexpr std::int64_t kLatest = 253'402'300'799;  // the year 9999
    GB_TRY_ASSIGN(auto start, number_parameter(target, "start", 0, kLatest));
    GB_TRY_ASSIGN(auto end, number_parameter(target, "end", 0, kLatest));
    TimeWindow out;
    out.to_ms = end ? *end * 1000 : now_ms;
    out.from_ms = start ? *start * 1000 : out.to_ms - default_ms;
    if (out.from_ms > out.to_ms) return bad_parameter("start", "before 'end'");
    return out;
}

}  // namespace gb::api
