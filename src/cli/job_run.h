// SPDX-License-Identifier: Apache-2.0
// One job from its start, or from where somebody left it, to its end: through the pauses that end each run of
// its sandbox, and through failures of the server and of the network.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "cli/backoff.h"
#include "cli/job_client.h"
#include "cli/job_report.h"

namespace gb::cli {

inline constexpr const char* kJobMetadata = "glovebox.job";  // its value is the job's name

struct JobOptions {
    std::string name;
    std::string template_ref = "base";
    std::optional<int> timeout_s;  // of one run of the sandbox; nothing: the longest of the plan
    std::map<std::string, std::string> env;
    std::vector<Upload> uploads;
    std::vector<std::string> command;
    bool keep = false;  // leave the sandbox as it is when the job has ended
};

class JobRun {
  public:
    JobRun(JobClient client, JobOptions options, JobReport report)
        : client_(std::move(client)), options_(std::move(options)), report_(std::move(report)) {}

    // The exit code of the job's command. An error: it was not started, or what became of it is not known.
    boost::asio::awaitable<Result<int>> start_and_follow();
    // Shows the output from `offset` (bytes) on.
    boost::asio::awaitable<Result<int>> attach(std::string sandbox_id, std::uint64_t offset);

    // The user wants his terminal back. True: at once, the job goes on without this client. False: the job
    // has not begun; what there is of it is removed first.
    bool interrupt();

  private:
    boost::asio::awaitable<Result<int>> run_timeout_s();
    boost::asio::awaitable<Status> create();
    boost::asio::awaitable<Result<bool>> find_made(std::string mark);
    boost::asio::awaitable<Status> wake();
    boost::asio::awaitable<Status> prepare();
    boost::asio::awaitable<Result<int>> launch();
    boost::asio::awaitable<Result<JobEnd>> follow();
    boost::asio::awaitable<Result<int>> finish(JobEnd end);
    boost::asio::awaitable<Status> wait(Error why);

    JobClient client_;
    JobOptions options_;
    JobReport report_;
    JobSandbox sandbox_;
    std::string run_started_at_;  // of the run that was seen last
    int segments_ = 0;
    std::string following_;     // tag of the command that carries the output; empty: there is none
    std::uint64_t offset_ = 0;  // bytes of the output that were shown
    Backoff backoff_;
    std::int64_t heard_ms_ = 0;  // when something went well for the last time, monotonic
    bool complained_ = false;    // since then
    bool begun_ = false;
    bool interrupted_ = false;
    bool output_broken_ = false;  // nobody reads it any more
};

}  // namespace gb::cli
