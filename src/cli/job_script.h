// SPDX-License-Identifier: Apache-2.0
// How a job lives in its sandbox, and what the agent is told to that end. Pure.
//
// ~/.glovebox-job holds `output` (what the command prints), `pid` (of the shell that waits for it) and, when
// it has ended, `exit`: its exit code and how many bytes it printed, put there by a rename. The command has a
// session of its own and no connection to anybody: whoever wants to see it follows the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::cli {

// Requests of the agent's Process/Start, JSON. Starting twice starts once: who got no answer may ask again.
std::string start_job_message(std::span<const std::string> command);
// A command that prints what the job printed from `offset` (bytes) on, goes on until the job has ended, and
// then writes the job's end to its standard error. It ends with kNoJob where there is no job.
// `tag` is how the agent knows it, for end_message().
std::string follow_job_message(std::uint64_t offset, std::string_view tag);
std::string end_message(std::string_view tag);  // a request of Process/SendSignal
inline constexpr int kNoJob = 125;

struct JobEnd {
    int exit_code = 0;  // as a shell says it: 128 and more for signals
    std::uint64_t output_bytes = 0;
};
// Nothing when it is not exactly that: the guest can write what it likes.
std::optional<JobEnd> parse_job_end(std::string_view text);

// A message of the agent's stream (process.StartResponse, JSON).
struct AgentEvent {
    std::string out, err;
    std::optional<int> exit_code;  // it has ended; -1: by a signal
};
Result<AgentEvent> parse_agent_event(std::string_view payload);

struct Upload {
    std::filesystem::path file;  // here
    std::string path;            // in the sandbox; relative: from the home folder
};
// "FILE:PATH", cut at the last colon.
Result<Upload> parse_upload(std::string_view text);

}  // namespace gb::cli
