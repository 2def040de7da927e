// SPDX-License-Identifier: Apache-2.0
// Runs another program to its end: arguments as a list (never through a shell), output captured, time limited. What it
// prints, and what it and its descendants are seen to do, is movement (base/stall.h).
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/stall.h"

namespace gb {

struct RunOptions {
    std::string stdin_data;
    std::vector<std::string> extra_env;              // NAME=value, beside the caller's environment
    std::string cwd;                                 // empty: the caller's
    // Then SIGKILL and deadline_exceeded.
    Patience timeout{std::chrono::minutes(1), std::chrono::hours(1)};
    std::stop_token stop;                            // the same, canceled, within a second of its request
    std::size_t max_output = 16UL << 20;             // per stream; the rest is read and dropped
    std::function<void(std::string_view)> on_stderr_line;  // called as lines arrive
    bool inherit_stderr = false;
};

struct RunOutput {
    int exit_code = 0;  // 128 + signal when a signal ended it
    std::string out;
    std::string err;
};

// The program could not be started, or ran out of time: an error. It ran and said no: an exit code.
Result<RunOutput> run(const std::vector<std::string>& argv, const RunOptions& options = {});

// The same, with a non-zero exit code turned into an error that carries the last lines of its standard error.
Result<RunOutput> run_checked(const std::vector<std::string>& argv, const RunOptions& options = {});

}  // namespace gb
