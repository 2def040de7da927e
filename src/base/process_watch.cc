// SPDX-License-Identifier: Apache-2.0
#include "base/process_watch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

// Of one processor. An emulated machine that idles needs a few percent of one for its timers.
constexpr std::int64_t kLeastPercent = 20;
constexpr std::int64_t kLeastStepUs = 900'000;  // who looks once a second may be a little early
constexpr std::int64_t kLongestStepUs = 10'000'000;

Result<StatLine> read_stat(const fs::path& folder) {
    GB_TRY_ASSIGN(const std::string text, read_file(folder / "stat"));
    return parse_stat_line(text);
}

// A kernel need not keep these; then the time on a processor has to do.
std::optional<std::int64_t> run_and_wait_us(const fs::path& folder) {
    auto text = read_file(folder / "schedstat");
    if (!text) return std::nullopt;
    std::istringstream fields(*text);
    std::int64_t ran_ns = 0, waited_ns = 0;
    if (!(fields >> ran_ns >> waited_ns)) return std::nullopt;
    return (ran_ns + waited_ns) / 1000;
}

std::optional<ProcessSample> sample(pid_t pid) {
    static const std::int64_t tick_us = 1'000'000 / std::max(::sysconf(_SC_CLK_TCK), 1L);
    std::error_code ec;
    ProcessSample out;
    bool any = false;
    fs::directory_iterator threads(fmt::format("/proc/{}/task", pid), ec);
    for (; !ec && threads != fs::directory_iterator(); threads.increment(ec)) {
        auto stat = read_stat(threads->path());
        if (!stat) continue;  // it has ended
        any = true;
        out.disk_wait = out.disk_wait || stat->state == 'D';
        out.busy_us += run_and_wait_us(threads->path())
                           .value_or(static_cast<std::int64_t>(stat->ticks) * tick_us);
    }
    return any ? std::optional(out) : std::nullopt;
}

}  // namespace

Result<StatLine> parse_stat_line(std::string_view line) {
    const std::size_t name_end = line.rfind(')');  // the name may hold anything
    if (name_end == std::string_view::npos) return fail(ErrorCode::data_loss, "not a line of /proc/<pid>/stat");
    std::istringstream fields{std::string(line.substr(name_end + 1))};
    StatLine out;
    std::string skipped;
    fields >> out.state >> out.parent;
    for (int field = 5; field < 14; ++field) fields >> skipped;
    std::uint64_t user = 0, system = 0;
    if (!(fields >> user >> system)) return fail(ErrorCode::data_loss, "/proc/<pid>/stat lacks the times");
    out.ticks = user + system;
    return out;
}

std::vector<pid_t> descendants(pid_t root) {
    std::multimap<pid_t, pid_t> children;
    std::error_code ec;
    fs::directory_iterator entries("/proc", ec);
    for (; !ec && entries != fs::directory_iterator(); entries.increment(ec)) {
        const std::string name = entries->path().filename();
        pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
        if (auto stat = read_stat(entries->path())) children.emplace(stat->parent, pid);
    }
    std::vector<pid_t> out{root};
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto [begin, end] = children.equal_range(out[i]);
        for (auto child = begin; child != end; ++child) out.push_back(child->second);
    }
    return out;
}

ProcessSamples sample_processes(pid_t pid, Family family) {
    ProcessSamples out;
    const std::vector<pid_t> pids =
        family == Family::alone ? std::vector<pid_t>(1, pid) : descendants(pid);
    for (pid_t one : pids)
        if (auto seen = sample(one)) out[one] = *seen;
    return out;
}

bool moved_between(const ProcessSamples& before, const ProcessSamples& after, std::int64_t elapsed_us) {
    std::int64_t busy_us = 0;
    for (const auto& [pid, now] : after) {
        if (now.disk_wait) return true;
        auto then = before.find(pid);
        if (then == before.end()) return true;
        // Less than before where a thread has ended.
        busy_us += std::max<std::int64_t>(now.busy_us - then->second.busy_us, 0);
    }
    return busy_us * 100 >= elapsed_us * kLeastPercent;
}

bool ProcessWatch::moved() {
    const std::int64_t now = monotonic_us();
    const std::int64_t elapsed = now - looked_us_;
    if (looked_us_ != 0 && elapsed < kLeastStepUs) return false;
    // Nothing is read for who does not wait: most waits are over before the second look.
    const bool begins = looked_us_ == 0 || elapsed > kLongestStepUs;
    ProcessSamples samples = begins ? ProcessSamples() : sample_processes(pid_, family_);
    const bool moved = !samples_.empty() && moved_between(samples_, samples, elapsed);
    samples_ = std::move(samples);
    looked_us_ = now;
    return moved;
}

}  // namespace gb
