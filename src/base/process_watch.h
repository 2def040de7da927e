// SPDX-License-Identifier: Apache-2.0
// Whether a process and its descendants are getting on, as far as that can be seen from outside: they use a processor,
// wait for one that others use, wait for a disk, or begin new processes. One that only waits for something to happen
// does none of these, but for a little of its timers.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace gb {

struct ProcessSample {
    std::int64_t busy_us = 0;  // all threads: time on a processor, and time of waiting for one
    bool disk_wait = false;    // a thread waits for a disk, and nothing can interrupt it

    friend bool operator==(const ProcessSample&, const ProcessSample&) = default;
};
using ProcessSamples = std::map<pid_t, ProcessSample>;

enum class Family { alone, with_descendants };
// Empty when there is no such process.
ProcessSamples sample_processes(pid_t pid, Family family);

// The process and all that descend from it, the process first; also those that have ended and were not waited for.
std::vector<pid_t> descendants(pid_t pid);

// Pure: whether what was seen `elapsed_us` apart is more than waiting.
bool moved_between(const ProcessSamples& before, const ProcessSamples& after, std::int64_t elapsed_us);

// Pure: user and system time of /proc/<pid>/stat in clock ticks, the process's parent, and its state.
struct StatLine {
    char state = '?';
    pid_t parent = 0;
    std::uint64_t ticks = 0;
};
Result<StatLine> parse_stat_line(std::string_view line);

class ProcessWatch {
  public:
    ProcessWatch(pid_t pid, Family family) : pid_(pid), family_(family) {}
    // Since the last look. False at the first two, and when the last one was less than a second or more than ten ago.
    bool moved();

  private:
    pid_t pid_;
    Family family_;
    std::int64_t looked_us_ = 0;
    ProcessSamples samples_;
};

}  // namespace gb
