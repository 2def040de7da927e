// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/oom_kills.h"

#include <charconv>

#include "base/file.h"

namespace gb::agent {

std::optional<std::uint64_t> parse_oom_kills(std::string_view vmstat) {
    constexpr std::string_view kName = "oom_kill ";
    while (!vmstat.empty()) {
        const std::string_view line = vmstat.substr(0, vmstat.find('\n'));
        vmstat.remove_prefix(line.size() + (line.size() < vmstat.size() ? 1 : 0));
        if (!line.starts_with(kName)) continue;
        std::uint64_t value = 0;
        auto [end, ec] = std::from_chars(line.data() + kName.size(), line.data() + line.size(), value);
        if (ec != std::errc{} || end != line.data() + line.size()) return std::nullopt;
        return value;
    }
    return std::nullopt;
}

void OomKills::restart() {
    take();
}

std::uint64_t OomKills::take() {
    const auto text = read_file("/proc/vmstat");
    const std::uint64_t now = text ? parse_oom_kills(*text).value_or(seen_) : seen_;
    const std::uint64_t more = now > seen_ ? now - seen_ : 0;
    seen_ = now;
    return more;
}

}  // namespace gb::agent
