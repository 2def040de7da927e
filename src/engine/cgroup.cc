// SPDX-License-Identifier: Apache-2.0
#include "engine/cgroup.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <thread>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/words.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kTop = "glovebox";
constexpr unsigned kPeriodUsec = 100'000;

bool valid_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && name.front() != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    });
}

Status make_dir(const fs::path& path) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
        return fail_errno(fmt::format("mkdir {}", path.string()));
    return {};
}

// Version 2 hands a controller down only where the parent's subtree_control names it.
Status delegate(const fs::path& folder) {
    GB_TRY_ASSIGN(std::string available, read_file(folder / "cgroup.controllers"));
    GB_TRY_ASSIGN(std::string enabled, read_file(folder / "cgroup.subtree_control"));
    auto on = words(enabled);
    for (const std::string_view controller : words(available)) {
        if (controller != "cpu" && controller != "memory" && controller != "pids") continue;
        if (std::ranges::find(on, controller) != on.end()) continue;
        GB_TRY(write_control_file(folder / "cgroup.subtree_control", fmt::format("+{}", controller)));
    }
    return {};
}

// "4:cpu,cpuacct:/path" in version 1, "0::/path" in version 2: whether the path is the root.
bool in_root_group(const std::string& self, CgroupVersion version) {
    for (std::size_t at = 0; at < self.size();) {
        const std::size_t end = std::min(self.find('\n', at), self.size());
        const std::string line = self.substr(at, end - at);
        at = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool about_cpu = version == CgroupVersion::v2 ? controllers == ",,"
                                                            : controllers.find(",cpu,") != std::string::npos;
        if (about_cpu) return line.substr(second + 1) == "/";
    }
    return false;
}

std::uint64_t number_in(const fs::path& path, std::string_view key = {}) {
    auto text = read_file(path);
    if (!text) return 0;
    std::string_view rest = *text;
    if (!key.empty()) {
        std::size_t at = rest.starts_with(key) ? 0 : rest.find("\n" + std::string(key) + " ");
        if (at == std::string_view::npos) return 0;
        rest.remove_prefix(rest.find(' ', at) + 1);
    }
    std::uint64_t value = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), value);
    return value;
}

}  // namespace

std::vector<fs::path> CgroupLayout::roots() const {
    std::set<fs::path> out;
    for (const auto& [controller, folder] : controllers) out.insert(folder);
    return {out.begin(), out.end()};
}

Result<CgroupLayout> detect_cgroup_layout(const fs::path& mount, const fs::path& self) {
    CgroupLayout layout;
    std::error_code ec;
    if (auto available = read_file(mount / "cgroup.controllers")) {
        for (const std::string_view controller : words(*available))
            if (controller == "cpu" || controller == "memory" || controller == "pids")
                layout.controllers[std::string(controller)] = mount;
    }
    if (!layout.has("memory") || !layout.has("pids")) {
        layout.controllers.clear();
        layout.version = CgroupVersion::v1;
        for (const char* controller : {"cpu", "cpuacct", "memory", "pids", "freezer"})
            if (fs::exists(mount / controller / "cgroup.procs", ec))
                layout.controllers[std::string(controller)] = mount / controller;
    }
    if (!layout.has("memory") || !layout.has("pids"))
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("{} offers no memory and pids controllers, of neither version", mount.string()));
    if (in_root_group(read_file(self).value_or(""), layout.version))
        layout.top_weight_percent = 100 * std::max(1U, std::thread::hardware_concurrency());
    return layout;
}

std::string weight_value(CgroupVersion version, unsigned percent) {
    if (version == CgroupVersion::v2) return std::to_string(std::clamp(percent, 1U, 10'000U));
    return std::to_string(std::clamp(percent * 1024 / 100, 2U, 262'144U));
}

std::vector<ControlWrite> control_writes(CgroupVersion version, const CgroupLimits& limits) {
    const bool v2 = version == CgroupVersion::v2;
    std::vector<ControlWrite> out;
    if (limits.memory_mib > 0) {
        const std::string bytes = std::to_string(limits.memory_mib << 20);
        out.push_back({"memory", v2 ? "memory.max" : "memory.limit_in_bytes", bytes});
        // No swap: a sandbox at its limit ends, it does not drag the host's disk down with it.
        if (v2) {
            out.push_back({"memory", "memory.swap.max", "0", false});
            out.push_back({"memory", "memory.oom.group", "1", false});
        } else {
            out.push_back({"memory", "memory.memsw.limit_in_bytes", bytes, false});
            out.push_back({"memory", "memory.swappiness", "0", false});
        }
    }
    if (limits.pids_max > 0) out.push_back({"pids", "pids.max", std::to_string(limits.pids_max)});
    const std::string weight = weight_value(version, limits.cpu_weight);
    const std::uint64_t quota = std::uint64_t{limits.cpu_percent} * kPeriodUsec / 100;
    if (v2) {
        out.push_back({"cpu", "cpu.weight", weight});
        out.push_back({"cpu", "cpu.max",
                       fmt::format("{} {}", quota == 0 ? "max" : std::to_string(quota), kPeriodUsec)});
    } else {
        out.push_back({"cpu", "cpu.shares", weight});
        // Absent in kernels without CFS bandwidth control.
        out.push_back({"cpu", "cpu.cfs_period_us", std::to_string(kPeriodUsec), false});
        out.push_back({"cpu", "cpu.cfs_quota_us", quota == 0 ? "-1" : std::to_string(quota), false});
    }
    return out;
}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
    if (this != &other) {
        (void)remove();
        folders_ = std::exchange(other.folders_, {});
        version_ = other.version_;
    }
    return *this;
}

Cgroup::~Cgroup() {
    (void)remove();
}

Cgroup Cgroup::open(const CgroupLayout& layout, std::string_view instance, std::string_view name) {
    Cgroup group;
    group.version_ = layout.version;
    for (const auto& [controller, folder] : layout.controllers)
        group.folders_[controller] = folder / kTop / instance / name;
    return group;
}

Result<Cgroup> Cgroup::create(const CgroupLayout& layout, std::string_view instance, std::string_view name,
                              const CgroupLimits& limits) {
    if (!valid_name(instance) || !valid_name(name))
        return fail(ErrorCode::invalid_argument, fmt::format("not a cgroup name: {}/{}", instance, name));
    const bool v2 = layout.version == CgroupVersion::v2;
    for (const fs::path& root : layout.roots()) {
        const fs::path top = root / kTop;
        if (v2) GB_TRY(delegate(root));
        GB_TRY(make_dir(top));
        if (v2) GB_TRY(delegate(top));
        GB_TRY(make_dir(top / instance));
        if (v2) GB_TRY(delegate(top / instance));
    }
    if (layout.has("cpu")) {
        const fs::path top = layout.controllers.at("cpu") / kTop;
        GB_TRY(write_control_file(top / (v2 ? "cpu.weight" : "cpu.shares"),
                                  weight_value(layout.version, layout.top_weight_percent)));
    }
    // Grows folder by folder, so that a failure half-way removes what was made and nothing else.
    Cgroup group;
    group.version_ = layout.version;
    std::set<fs::path> made;
    for (const auto& [controller, root] : layout.controllers) {
        const fs::path folder = root / kTop / instance / name;
        if (made.insert(folder).second && ::mkdir(folder.c_str(), 0755) != 0)
            return fail_errno(fmt::format("mkdir {}", folder.string()));
        group.folders_[controller] = folder;
    }
    GB_TRY(group.set_limits(limits));
    return group;
}

fs::path Cgroup::file(const std::string& controller, std::string_view name) const {
    auto found = folders_.find(controller);
    return found == folders_.end() ? fs::path() : found->second / name;
}

Status Cgroup::set_limits(const CgroupLimits& limits) {
    std::error_code ec;
    for (const ControlWrite& write : control_writes(version_, limits)) {
        const fs::path path = file(write.controller, write.file);
        if (path.empty() || (!write.required && !fs::exists(path, ec))) continue;
        GB_TRY(write_control_file(path, write.value));
    }
    return {};
}

Status Cgroup::set_cpu_weight(unsigned weight) {
    const fs::path path = file("cpu", version_ == CgroupVersion::v2 ? "cpu.weight" : "cpu.shares");
    return path.empty() ? Status() : write_control_file(path, weight_value(version_, weight));
}

Result<UniqueFd> Cgroup::birth_folder() const {
    if (version_ != CgroupVersion::v2 || folders_.empty()) return UniqueFd();
    return open_file(folders_.begin()->second, O_RDONLY | O_DIRECTORY);
}

Status Cgroup::attach(pid_t pid) const {
    std::set<fs::path> unique;
    for (const auto& [controller, folder] : folders_) unique.insert(folder);
    for (const fs::path& folder : unique)
        GB_TRY(write_control_file(folder / "cgroup.procs", std::to_string(pid)));
    return {};
}

std::vector<pid_t> Cgroup::processes() const {
    std::set<pid_t> pids;
    for (const auto& [controller, folder] : folders_) {
        auto text = read_file(folder / "cgroup.procs");
        if (!text) continue;
        for (const std::string_view word : words(*text)) {
            pid_t pid = 0;
            std::from_chars(word.data(), word.data() + word.size(), pid);
            if (pid > 0) pids.insert(pid);  // 0 is a process of a pid namespace that cannot be seen from here
        }
    }
    return {pids.begin(), pids.end()};
}

bool Cgroup::contains(pid_t pid) const {
    std::set<fs::path> unique;
    for (const auto& [controller, folder] : folders_) unique.insert(folder);
    const std::string name = std::to_string(pid);
    return !unique.empty() && std::ranges::all_of(unique, [&](const fs::path& folder) {
        auto text = read_file(folder / "cgroup.procs");
        if (!text) return false;
        const auto members = words(*text);
        return std::ranges::find(members, name) != members.end();
    });
}

CgroupUsage Cgroup::usage() const {
    if (version_ == CgroupVersion::v2)
        return {number_in(file("cpu", "cpu.stat"), "usage_usec"),
                number_in(file("memory", "memory.current"))};
    return {number_in(file("cpuacct", "cpuacct.usage")) / 1000,
            number_in(file("memory", "memory.usage_in_bytes"))};
}

void Cgroup::kill_once() const {
    const fs::path one = folders_.begin()->second;
    if (version_ == CgroupVersion::v2 && write_control_file(one / "cgroup.kill", "1")) return;
    // Frozen, the list cannot change under our hands: no new child, no process id used again.
    const bool v2 = version_ == CgroupVersion::v2;
    const fs::path freezer = v2 ? one / "cgroup.freeze" : file("freezer", "freezer.state");
    if (!freezer.empty()) (void)write_control_file(freezer, v2 ? "1" : "FROZEN");
    for (pid_t pid : processes()) ::kill(pid, SIGKILL);
    if (!freezer.empty()) (void)write_control_file(freezer, v2 ? "0" : "THAWED");
}

Status Cgroup::kill_all(std::chrono::milliseconds limit) {
    if (folders_.empty()) return {};
    const std::int64_t deadline = monotonic_ms() + limit.count();
    for (;;) {
        std::vector<pid_t> left = processes();
        if (left.empty()) return {};
        kill_once();
        if (monotonic_ms() > deadline)
            return fail(
                ErrorCode::deadline_exceeded,
                fmt::format("{} processes of {} do not end", left.size(), folders_.begin()->second.string()));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

Status Cgroup::remove(std::chrono::milliseconds limit) {
    if (folders_.empty()) return {};
    Status status = kill_all(limit);
    const std::int64_t deadline = monotonic_ms() + limit.count();
    for (const auto& [controller, folder] : folders_) {
        // A member that has just ended still counts for a moment: the kernel says EBUSY.
        while (::rmdir(folder.c_str()) != 0 && errno != ENOENT) {
            const int err = errno;
            if (err != EBUSY || monotonic_ms() > deadline) {
                if (status) status = fail_errno(err, fmt::format("rmdir {}", folder.string()));
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    if (status) folders_.clear();
    return status;
}

std::vector<std::string> list_cgroups(const CgroupLayout& layout, std::string_view instance) {
    std::set<std::string> names;
    std::error_code ec;
    for (const fs::path& root : layout.roots())
        for (const auto& entry : fs::directory_iterator(root / kTop / instance, ec))
            if (entry.is_directory(ec)) names.insert(entry.path().filename().string());
    return {names.begin(), names.end()};
}

Status reclaim_cgroups(const CgroupLayout& layout, std::string_view instance,
                       std::vector<std::string>* reclaimed, const std::vector<std::string>& keep) {
    if (!valid_name(instance))
        return fail(ErrorCode::invalid_argument, fmt::format("not an instance: {}", instance));
    Status first;
    for (const std::string& name : list_cgroups(layout, instance)) {
        if (std::ranges::find(keep, name) != keep.end()) continue;
        Status status = Cgroup::open(layout, instance, name).remove();
        if (!status && first) first = status;
        if (status && reclaimed != nullptr) reclaimed->push_back(name);
    }
    return first;
}

}  // namespace gb::engine
