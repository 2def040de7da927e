// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/process_log.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace gb::agent {
namespace {

constexpr std::size_t kMaxInMessage = 200;  // bytes of a command; its field holds more

std::string brief(const LoggedProcess& process) {
    return shortened(process.command, kMaxInMessage);
}

}  // namespace

LoggedProcess describe(const Launch& launch, std::string_view user) {
    LoggedProcess out;
    out.kind = launch.terminal ? "terminal" : "process";
    out.user = user;
    out.cwd = launch.spawn.cwd;
    out.command = launch.spawn.program;
    for (const std::string& argument : launch.spawn.args) {
        if (out.command.size() > TelemetryLog::kMaxText) break;  // arguments may have megabytes
        out.command += ' ';
        out.command += std::string_view(argument).substr(0, TelemetryLog::kMaxText);
    }
    return out;
}

void log_start(TelemetryLog& log, const LoggedProcess& process) {
    log.add(TelemetryLog::Level::info, "process", fmt::format("{} started: {}", process.kind, brief(process)),
            {{"pid", std::to_string(process.pid)},
             {"command", process.command},
             {"user", process.user},
             {"cwd", process.cwd}});
}

void log_failed_start(TelemetryLog& log, const LoggedProcess& process, const Error& error) {
    log.add(TelemetryLog::Level::warn, "process",
            fmt::format("{} not started: {}", process.kind, brief(process)),
            {{"command", process.command},
             {"user", process.user},
             {"cwd", process.cwd},
             {"error", error.message}});
}

void log_end(TelemetryLog& log, const LoggedProcess& process, const EndEvent& end) {
    const std::string how = end.timed_out ? "killed at its deadline"
                            : end.exited  ? fmt::format("ended with exit code {}", end.exit_code)
                                          : fmt::format("ended by a {}", end.status);
    log.add(TelemetryLog::Level::info, "process", fmt::format("{} {}: {}", process.kind, how, brief(process)),
            {{"pid", std::to_string(process.pid)},
             {"exit_code", std::to_string(end.exit_code)},
             {"status", end.status},
             {"duration_ms", std::to_string(monotonic_ms() - process.started_ms)},
             {"command", process.command}});
}

}  // namespace gb::agent
