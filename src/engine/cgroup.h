// SPDX-License-Identifier: Apache-2.0
// Control groups: what a sandbox's processes may use together, and a handle on all of them.
//
// A group is the folder glovebox/<instance>/<name> below each hierarchy. Where the hierarchies are, and
// whether they are version 1 (one tree per controller) or version 2 (one tree), is data: a delegated subtree
// and a folder in a test work like the real thing. Sources: Linux Documentation/admin-guide/cgroup-v1 and
// cgroup-v2.rst.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::engine {

enum class CgroupVersion { v1, v2 };

struct CgroupLayout {
    CgroupVersion version = CgroupVersion::v2;
    // Controller to the folder under which its groups are made. In version 2 all name the same folder.
    // Known: cpu, cpuacct (v1), memory, pids, freezer (v1).
    std::map<std::string, std::filesystem::path> controllers;

    // Weight of the group glovebox, that is of all sandboxes together, in percent of a normal group's. The
    // server stands beside it, so that busy sandboxes cannot starve it. Where its neighbours are single
    // processes and not groups it must be 100 for each processor: a group's weight is divided by the
    // processors it runs on, a process's is not.
    unsigned top_weight_percent = 100;

    [[nodiscard]] bool has(const std::string& controller) const { return controllers.contains(controller); }
    [[nodiscard]] std::vector<std::filesystem::path> roots() const;  // each folder once
};

// Looks at a mounted cgroup tree. `self` is this process's /proc/self/cgroup, which says whether the server's
// threads stand beside the group glovebox themselves or in a group of their own. Version 2 is taken when it
// offers memory and pids, else version 1. failed_precondition when neither has them: without these two a
// sandbox could exhaust the host.
Result<CgroupLayout> detect_cgroup_layout(const std::filesystem::path& mount = "/sys/fs/cgroup",
                                          const std::filesystem::path& self = "/proc/self/cgroup");

struct CgroupLimits {
    std::uint64_t memory_mib = 0;  // anonymous memory and page cache together; swap is not allowed
    unsigned cpu_percent = 0;      // 100 is one whole processor; 0: no limit
    unsigned pids_max = 0;         // tasks, threads included
    unsigned cpu_weight = 100;     // share among sandboxes under contention, 1 to 10000
};

// The control files that carry the limits, in the order in which they must be written. `required` is false
// where kernels differ: such a file is written when it exists.
struct ControlWrite {
    std::string controller;
    std::string file;
    std::string value;
    bool required = true;
};
std::vector<ControlWrite> control_writes(CgroupVersion version, const CgroupLimits& limits);

struct CgroupUsage {
    std::uint64_t cpu_usec = 0;      // since the group was made
    std::uint64_t memory_bytes = 0;  // now
};

// One group. Owns it: the destructor kills what runs in it and removes it.
class Cgroup {
  public:
    Cgroup() = default;
    Cgroup(Cgroup&& other) noexcept : folders_(std::exchange(other.folders_, {})), version_(other.version_) {}
    Cgroup& operator=(Cgroup&& other) noexcept;
    Cgroup(const Cgroup&) = delete;
    Cgroup& operator=(const Cgroup&) = delete;
    ~Cgroup();

    // Makes the group with its limits; already_exists when it is there. Both names: letters, digits, '.', '_'
    // and
    // '-', at most 64, no leading '.'.
    static Result<Cgroup> create(const CgroupLayout& layout, std::string_view instance, std::string_view name,
                                 const CgroupLimits& limits);

    // A group that is there already, for instance from before a restart; it is owned like one that was made.
    static Cgroup open(const CgroupLayout& layout, std::string_view instance, std::string_view name);

    // Version 2: the group's folder, for clone3's CLONE_INTO_CGROUP, by which a process is born in the group
    // at no cost. Version 1 has no such thing: an empty descriptor, and attach().
    [[nodiscard]] Result<UniqueFd> birth_folder() const;

    // Moves a process, all its threads, into the group. May wait 5 to 20 ms for the kernel (an RCU grace
    // period).
    Status attach(pid_t pid) const;

    [[nodiscard]] std::vector<pid_t> processes() const;
    // Whether the process is in the group, in every hierarchy.
    [[nodiscard]] bool contains(pid_t pid) const;
    [[nodiscard]] CgroupUsage usage() const;
    Status set_limits(const CgroupLimits& limits);
    Status set_cpu_weight(unsigned weight);  // as in the limits; the others stay

    // A process with much memory, or on a slow disk, takes long to vanish.
    static constexpr std::chrono::minutes kEndLimit{1};
    // SIGKILL to every member until none is left; then removes the group. Both are idempotent.
    Status kill_all(std::chrono::milliseconds limit = kEndLimit);
    Status remove(std::chrono::milliseconds limit = kEndLimit);

    // Gives the group up as it is, with what runs in it.
    void leave() { folders_.clear(); }

    [[nodiscard]] bool valid() const { return !folders_.empty(); }

  private:
    void kill_once() const;
    [[nodiscard]] std::filesystem::path file(const std::string& controller, std::string_view name) const;

    std::map<std::string, std::filesystem::path> folders_;  // controller to the group's own folder
    CgroupVersion version_ = CgroupVersion::v2;
};

// Names of the groups of one instance, in any hierarchy.
std::vector<std::string> list_cgroups(const CgroupLayout& layout, std::string_view instance);

// For start-up: ends every process in the groups of `instance` and removes the groups, but for those named in
// `keep`. `reclaimed`, when given, receives their names. Goes on after a failure and returns the first one.
Status reclaim_cgroups(const CgroupLayout& layout, std::string_view instance,
                       std::vector<std::string>* reclaimed = nullptr,
                       const std::vector<std::string>& keep = {});

}  // namespace gb::engine
