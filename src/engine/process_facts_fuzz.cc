// SPDX-License-Identifier: Apache-2.0
// What /proc says of a process, whose name is any bytes that it likes: never a crash, and the start time is
// found behind whatever name.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/process_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)gb::engine::parse_start_ticks(text);
    (void)gb::engine::parse_uid(text);
    std::string line = "42 (";
    line.append(text);
    line += ") S 1 2 3 0 -1 4194560 5 0 0 0 6 7 0 0 20 0 1 0 123456 8 9 10";
    auto ticks = gb::engine::parse_start_ticks(line);
    if (!ticks || *ticks != 123456) std::abort();
    return 0;
}
