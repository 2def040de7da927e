// SPDX-License-Identifier: Apache-2.0
#include "base/host_memory.h"

#include <charconv>

#include "base/file.h"

namespace gb {

Result<std::uint64_t> available_memory_mib() {
    GB_TRY_ASSIGN(std::string text, read_file("/proc/meminfo"));
    std::size_t at = text.find("MemAvailable:");
    if (at != std::string::npos) at = text.find_first_of("0123456789", at);
    if (at == std::string::npos) return fail(ErrorCode::unavailable, "/proc/meminfo says nothing of MemAvailable");
    std::uint64_t kib = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), kib);
    return kib / 1024;
}

}  // namespace gb
