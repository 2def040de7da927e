// SPDX-License-Identifier: Apache-2.0
// What the log says about processes: that they started, as whom and where, and how they ended. Never their
// environment.
#pragma once

#include <string>
#include <string_view>

#include "guest/agent/process_table.h"
#include "guest/agent/telemetry_log.h"

namespace gb::agent {

// A process as both of its entries name it; outlives it.
struct LoggedProcess {
    std::string kind;     // "process" or "terminal"
    std::string command;  // with its arguments
    std::string user;
    std::string cwd;
    pid_t pid = -1;               // -1: not started
    std::int64_t started_ms = 0;  // monotonic
};
LoggedProcess describe(const Launch& launch, std::string_view user);

void log_start(TelemetryLog& log, const LoggedProcess& process);
void log_failed_start(TelemetryLog& log, const LoggedProcess& process, const Error& error);
void log_end(TelemetryLog& log, const LoggedProcess& process, const EndEvent& end);

}  // namespace gb::agent
