// SPDX-License-Identifier: Apache-2.0
// The second net below the control groups: processes of this server's VMM roots that are in no group, for
// instance because the server died between starting one and moving it there.
#pragma once

#include <filesystem>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace gb::engine {

// Processes whose program is the QEMU of a VMM root below `folder` (compared by device and inode: their own
// view of the path says nothing). The folder belongs to one server.
std::vector<pid_t> find_stray_vmms(const std::filesystem::path& folder);

// Ends them, but for those in `keep`. For start-up, before any machine is made.
Status kill_stray_vmms(const std::filesystem::path& folder, const std::vector<pid_t>& keep = {});

// Whether the process runs this very file. The answer holds while the process cannot have ended (pidfd).
bool runs_program(pid_t pid, const std::filesystem::path& program);

}  // namespace gb::engine
