// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include <sys/resource.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "guest/agent/metrics.h"
#include "guest/agent/system_setup.h"

namespace gb::agent {
namespace {

const std::string kRoot = "/sys/fs/cgroup";

void set(const std::string& file, const std::string& value) {
    if (const Status written = write_control_file(kRoot + "/" + file, value); !written)
        log::warn("cgroup", {{"error", written.error().message}});
}

UniqueFd open_folder(const std::string& name) {
    return UniqueFd(::open((kRoot + "/" + name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// What stays for the agent, the kernel's own caches and the page tables.
std::uint64_t reserve(std::uint64_t total) {
    constexpr std::uint64_t kMiB = 1 << 20;
    return std::clamp(total / 8, 32 * kMiB, 128 * kMiB);
}

}  // namespace

Cgroups set_up_cgroups() {
    if (::access((kRoot + "/cgroup.controllers").c_str(), F_OK) != 0) {
        log::warn("no cgroup v2: commands are not kept from the agent's memory");
        return {};
    }
    set("cgroup.subtree_control", "+cpu");
    set("cgroup.subtree_control", "+memory");
    set("cgroup.subtree_control", "+pids");
    for (const char* name : {"agent", "user", "pty"})
        if (::mkdir((kRoot + "/" + name).c_str(), 0755) != 0 && errno != EEXIST)
            log::warn("cgroup", {{"error", Error::from_errno(errno, name).message}});
    set("agent/cgroup.procs", "0");
    set("agent/cpu.weight", "1000");
    set("agent/memory.min", std::to_string(32 << 20));
    set("user/cpu.weight", "50");
    set("pty/cpu.weight", "200");  // somebody waits for what they typed
    const auto meminfo = read_file("/proc/meminfo");
    const std::uint64_t total = meminfo ? parse_memory(*meminfo).total : 0;
    if (total > 0) {
        const std::string limit = std::to_string(total - std::min(total / 2, reserve(total)));
        set("user/memory.max", limit);
        set("pty/memory.max", limit);
    }
    return {open_folder("user"), open_folder("pty")};
}

void protect_agent() {
    if (const Status written = write_control_file("/proc/self/oom_score_adj", "-1000"); !written)
        log::warn("oom score", {{"error", written.error().message}});
    ::setpriority(PRIO_PROCESS, 0, -10);
    // The soft limit is what programs get to see; far more makes some of them close a million descriptors.
    const rlimit files{65536, 1048576};
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) log::warn("descriptor limit not raised");
}

}  // namespace gb::agent
