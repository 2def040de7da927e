// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/metrics.h"

#include <algorithm>
#include <charconv>

#include <sys/statvfs.h>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb::agent {
namespace {

// The next number in `text`, which then starts behind it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    text.remove_prefix(std::min(text.size(), text.find_first_of("0123456789\n")));
    std::uint64_t value = 0;
    auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return value;
}

std::uint64_t kib_of(std::string_view meminfo, std::string_view key) {
    const std::size_t at = meminfo.find(key);
    if (at == std::string_view::npos) return 0;
    meminfo.remove_prefix(at + key.size());
    return take_number(meminfo).value_or(0) * 1024;
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat) {
    if (!proc_stat.starts_with("cpu ")) return std::nullopt;
    proc_stat.remove_prefix(4);
    CpuTimes times;
    // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
    for (int field = 0; field < 8; ++field) {
        const auto value = take_number(proc_stat);
        if (!value) break;
        times.total += *value;
        if (field != 3 && field != 4) times.busy += *value;
    }
    return times;
}

double cpu_used_percent(const CpuTimes& before, const CpuTimes& after) {
    if (after.total <= before.total || after.busy < before.busy) return 0;
    const double share =
        static_cast<double>(after.busy - before.busy) / static_cast<double>(after.total - before.total);
    return std::clamp(share * 100, 0.0, 100.0);
}

MemoryUse parse_memory(std::string_view meminfo) {
    MemoryUse use;
    use.total = kib_of(meminfo, "MemTotal:");
    const std::uint64_t available = kib_of(meminfo, "MemAvailable:");
    use.used = use.total - std::min(use.total, available);
    use.cache = kib_of(meminfo, "\nCached:");
    return use;
}

Result<CpuTimes> read_cpu_times() {
    GB_TRY_ASSIGN(const std::string text, read_file("/proc/stat"));
    const auto times = parse_cpu_times(text);
    if (!times) return fail(ErrorCode::internal, "/proc/stat has no processor times");
    return *times;
}

Result<std::string> metrics_json(double cpu_used_pct) {
    GB_TRY_ASSIGN(const std::string meminfo, read_file("/proc/meminfo"));
    const MemoryUse memory = parse_memory(meminfo);
    struct statvfs disk{};
    if (::statvfs("/", &disk) != 0) return fail_errno("statvfs /");
    const std::uint64_t disk_total = std::uint64_t{disk.f_blocks} * disk.f_frsize;
    const std::uint64_t disk_free = std::uint64_t{disk.f_bfree} * disk.f_frsize;
    return fmt::format(
        R"({{"ts":{},"cpu_count":{},"cpu_used_pct":{:.2f},"mem_total":{},"mem_used":{},"mem_cache":{},)"
        R"("mem_total_mib":{},"mem_used_mib":{},"disk_used":{},"disk_total":{}}})",
        now_ms() / 1000, ::sysconf(_SC_NPROCESSORS_ONLN), cpu_used_pct, memory.total, memory.used,
        memory.cache, memory.total >> 20, memory.used >> 20, disk_total - disk_free, disk_total);
}

}  // namespace gb::agent
