// SPDX-License-Identifier: Apache-2.0
// A parent that does nothing but start the serving child again when it dies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gb::interpreter {

// Runs this program again with `argv` until it ends by itself or this process is told to stop (SIGTERM,
// SIGINT). After a crash the flag `after_crash` is added to its arguments. Crashes are followed by a pause
// that grows up to some seconds. Returns the exit code for the parent.
int supervise(std::vector<std::string> argv, std::string_view after_crash);

}  // namespace gb::interpreter
