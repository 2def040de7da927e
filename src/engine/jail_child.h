// SPDX-License-Identifier: Apache-2.0
// The part of jail.h that runs between clone and exec. The child shares the parent's memory while the
// parent's thread waits (like vfork), so it may only make system calls on data that was prepared before: no
// allocation, no lock, no library call that could take one.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace gb::engine {

enum class JailStep : int {
    none,
    network,
    mount_namespace,
    root,
    bind,
    devices,
    pivot,
    limits,
    privileges,
    identity,
    capabilities,
    descriptors,
    exec,
};
const char* jail_step_name(JailStep step);

struct ChildMount {
    const char* source;
    const char* target;   // relative to the root: "vm/disk"
    unsigned long flags;  // of the remount
};

struct ChildDevice {
    const char* path;  // relative to the root: "dev/null"
    dev_t number;
};

inline constexpr std::size_t kMaxChildDescriptors = 16;

struct ChildPlan {
    int cgroup_folder;  // version 2, the child is born in it; -1: none
    int netns_fd;
    const char* root;
    const ChildMount* mounts;
    std::size_t mount_count;
    const ChildDevice* devices;
    std::size_t device_count;
    const int* descriptors;        // ours; the i-th becomes number i inside, all others are closed
    std::size_t descriptor_count;  // at most kMaxChildDescriptors
    unsigned open_files_max;
    bool end_with_parent;
    uid_t uid;
    gid_t gid;
    const char* const* argv;
    const char* const* env;

    // Written by the child before it gives up.
    JailStep failed_step;
    int failed_errno;
    std::size_t failed_mount;
};

// Starts the child on a stack of its own and waits until it has exec'ed or given up. Returns its pid and sets
// `pidfd`, or -errno. A child that gave up has filled in plan.failed_* and must still be reaped.
pid_t clone_into_jail(ChildPlan& plan, int& pidfd);

}  // namespace gb::engine
