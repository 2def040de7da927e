// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/session.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/unique_dir.h"

namespace gb::agent {
namespace {

// The session of a process that is not a zombie yet, 0 if it is or has gone.
pid_t live_session(const char* pid) {
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (n <= 0) return 0;
    text[n] = '\0';
    // The name in parentheses may hold anything, even parentheses: "pid (name) state ppid pgrp session …".
    const char* rest = std::strrchr(text, ')');
    char state = 0;
    int parent = 0, group = 0, session = 0;
    if (rest == nullptr || std::sscanf(rest + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : session;
}

bool kill_members(pid_t session) {
    const UniqueDir proc(::opendir("/proc"));
    if (!proc) return false;
    bool found = false;
    while (const dirent* entry = ::readdir(proc.get())) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        if (live_session(entry->d_name) != session) continue;
        found = true;
        ::kill(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), SIGKILL);
    }
    return found;
}

}  // namespace

bool signal_group(pid_t leader, int signal) {
    return ::kill(-leader, signal) == 0;
}

void kill_session(pid_t leader) {
    signal_group(leader, SIGKILL);
    // Again while a pass finds somebody: a process may fork between being listed and being killed.
    for (int pass = 0; pass < 10 && kill_members(leader); ++pass) {
    }
}

}  // namespace gb::agent
