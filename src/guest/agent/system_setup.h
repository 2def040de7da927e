// SPDX-License-Identifier: Apache-2.0
// The duties of PID 1 before it serves: file systems, limits, network, cgroups. Each step does what it can; what
// fails is logged, because a sandbox without a cgroup is better than none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::agent {

// From the kernel command line: glovebox.ip=10.11.0.2/30 glovebox.gw=10.11.0.1
struct NetworkPlan {
    std::string address;  // dotted
    unsigned prefix = 0;
    std::string gateway;  // empty: no default route
};
// Nothing without glovebox.ip; invalid_argument when it makes no sense. Pure.
Result<std::optional<NetworkPlan>> parse_network_plan(std::string_view kernel_command_line);

// The value of `key` on a kernel command line, "" if it is not there. Pure.
std::string kernel_parameter(std::string_view kernel_command_line, std::string_view key);

// /proc, /sys, /dev with pts and shm, /sys/fs/cgroup, and `state_dir` as memory: it holds secrets. What is
// mounted already is left alone.
void mount_file_systems(const std::string& state_dir);

// udev's share of a devtmpfs: the kernel gives these devices to root alone, and what may be done with them it asks
// elsewhere. Those that are not there are passed over.
void open_devices(const std::string& folder);

// lo, and eth0 as planned.
Status set_up_network(const std::optional<NetworkPlan>& plan);

struct Cgroups {
    UniqueFd user, pty;  // folders for new processes; invalid without cgroup v2
};
// The agent in `agent`, with memory that nobody can take from it; commands in `user` and terminals in `pty`,
// with less weight and, together with the agent's reserve, less than all of the memory: a command that takes
// too much is killed, the agent is not.
Cgroups set_up_cgroups();

// What programs may ask of the kernel, where its own limits are too low for a small machine.
void set_kernel_limits();

// Never chosen by the out-of-memory killer, scheduled first, many descriptors.
void protect_agent();

}  // namespace gb::agent
