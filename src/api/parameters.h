// SPDX-License-Identifier: Apache-2.0
// Reads query parameters. One that is malformed is an invalid_argument that names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message.h"

namespace gb::api {

std::unexpected<Error> bad_parameter(std::string_view name, std::string_view wanted);

// Nothing when it is absent.
Result<std::optional<std::int64_t>> number_parameter(const http::Target& target, std::string_view name,
                                                     std::int64_t least, std::int64_t most);

// All values of a parameter that may be repeated or comma-joined, without empty ones.
std::vector<std::string> list_parameter(const http::Target& target, std::string_view name);

Result<std::size_t> page_limit(const http::Target& target);  // "limit": 1 to 100, 100 when absent

// "start" and "end", Unix seconds. Absent: the last `default_ms` until now. invalid_argument when start is after end.
struct TimeWindow {
    std::int64_t from_ms = 0, to_ms = 0;
};
Result<TimeWindow> time_window(const http::Target& target, std::int64_t now_ms, std::int64_t default_ms);

}  // namespace gb::api
