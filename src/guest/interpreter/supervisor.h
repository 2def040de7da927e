// A parent that does nothing but start the serving child again when it dies.
#pragma once

#include <string>
#include <vector>

namespace gb::interpreter {

// Runs this program again with `argv` until it ends by itself or this process is told to stop (SIGTERM,
// SIGINT). Crashes are followed by a pause that grows up to some seconds. Returns the exit code for the
// parent.
int supervise(const std::vector<std::string>& argv);

}  // namespace gb::interpreter
