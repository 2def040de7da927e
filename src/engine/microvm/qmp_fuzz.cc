// SPDX-License-Identifier: Apache-2.0
// What QEMU's monitor says, in any pieces: never a crash, never more memory than a line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/microvm/qmp_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::size_t piece = data[0] + std::size_t{1};
    std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
    gb::engine::QmpLines lines;
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, piece);
        rest.remove_prefix(part.size());
        if (!lines.feed(part)) break;
        while (auto line = lines.next()) (void)gb::engine::parse_qmp_line(*line);
    }
    return 0;
}
