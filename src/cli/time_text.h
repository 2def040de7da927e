// SPDX-License-Identifier: Apache-2.0
// A moment as a person writes it on a command line. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace gb::cli {

// Unix seconds, a date (2026-01-31, its beginning in UTC) or RFC 3339; to Unix seconds, cut to whole ones.
Result<std::int64_t> parse_time_text(std::string_view text);

}  // namespace gb::cli
