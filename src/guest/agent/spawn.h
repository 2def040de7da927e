// SPDX-License-Identifier: Apache-2.0
// Starts a program as some user: the one place where the agent forks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::agent {

struct SpawnRequest {
    std::string program;            // looked up in `search_path` unless it holds a slash
    std::vector<std::string> args;  // without the program itself
    std::vector<std::string> env;   // NAME=value; the whole environment
    std::string search_path;        // as in PATH
    std::string cwd;                // absolute

    // The program's ends of its pipes, or three times the terminal. They stay the caller's. They must be
    // blocking: O_NONBLOCK belongs to the open file, and programs do not expect it.
    int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;
    bool controlling_terminal = false;  // stdin_fd is a terminal that becomes the session's

    bool set_credentials = false;  // needs root; otherwise the program runs as the agent does
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;

    std::optional<int> oom_score_adj;
    bool reset_nice = false;
    int cgroup_fd = -1;  // folder of a cgroup v2, -1: the agent's own
};

struct Spawned {
    pid_t pid = -1;
    // Gets EOF when the program runs, or kReportSize bytes when it could not be started; see spawn_failure().
    UniqueFd report;
};

inline constexpr std::size_t kReportSize = 8;

// The child is the leader of a session and process group of its own, with default signals, umask 022 and no
// descriptors but the three. Returns once it is forked, before it has executed anything: a working directory
// on a dead network mount may keep it from that for ever, and must not hold up the agent.
Result<Spawned> spawn(const SpawnRequest& request);

// What the bytes of `report` mean: the errno of the step that failed, as the error of the start.
Error spawn_failure(std::string_view report, const SpawnRequest& request);

}  // namespace gb::agent
