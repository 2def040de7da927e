// SPDX-License-Identifier: Apache-2.0
// What proc(5) says of a process, as far as it tells whether a process is the one that was meant: its number
// alone may have a new owner. Pure parsers and one reader.
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"

namespace gb::engine {

struct ProcessFacts {
    std::uint64_t start_ticks = 0;  // clock ticks from the boot of the host to the start of the process
    uid_t uid = 0;                  // real, effective, saved and file system user, which must be one
};

// /proc/<pid>/stat. The second field is the program's name as the process likes it, with any bytes in it.
Result<std::uint64_t> parse_start_ticks(std::string_view stat);
// /proc/<pid>/status. failed_precondition when the four users differ.
Result<uid_t> parse_uid(std::string_view status);

// not_found when there is no such process. The answer holds for the process that a pidfd stands for when the
// pidfd was opened before and its process has not ended after.
Result<ProcessFacts> read_process_facts(pid_t pid);

}  // namespace gb::engine
