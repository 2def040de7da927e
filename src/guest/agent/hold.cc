// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/hold.h"

#include <atomic>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace gb::agent {
namespace {

constexpr std::chrono::seconds kLongestHold{5};
constexpr std::chrono::milliseconds kStep{2};
constexpr int kSteps = 100;  // one that waits for its disk stops when the disk answers

std::atomic<unsigned> g_holds{0};

Status set(std::array<int, 2> groups, const char* value) {
    for (int group : groups) {
        if (group < 0) continue;
        const UniqueFd file(::openat(group, "cgroup.freeze", O_WRONLY | O_CLOEXEC));
        if (!file) return fail_errno("open cgroup.freeze");
        GB_TRY(write_all(file.get(), value));
    }
    return {};
}

bool is_still(int group) {
    const UniqueFd file(::openat(group, "cgroup.events", O_RDONLY | O_CLOEXEC));
    char text[256] = {};
    if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) return false;
    return std::string_view(text).contains("frozen 1");
}

}  // namespace

Status hold_processes(std::array<int, 2> groups) {
    GB_TRY(set(groups, "1"));
    std::thread([groups, mine = ++g_holds] {
        std::this_thread::sleep_for(kLongestHold);
        if (g_holds != mine) return;
        if (Status released = set(groups, "0"); !released)
            log::error("processes are held", {{"error", released.error().message}});
    }).detach();
    for (int group : groups)
        for (int step = 0; group >= 0 && step < kSteps && !is_still(group); ++step)
            std::this_thread::sleep_for(kStep);
    return {};
}

Status release_processes(std::array<int, 2> groups) {
    ++g_holds;
    return set(groups, "0");
}

}  // namespace gb::agent
