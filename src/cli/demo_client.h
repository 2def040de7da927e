// SPDX-License-Identifier: Apache-2.0
// What the demo asks of its server, as any program of a user's would. Coroutines.
#pragma once

#include <map>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"
#include "cli/job_client.h"

namespace gb::cli {

struct GuestOutput {
    int exit_code = 0;
    std::string out, err;  // at most 1 MiB each; a guest's word
};

class DemoClient {
  public:
    explicit DemoClient(JobClient client) : client_(std::move(client)) {}

    boost::asio::awaitable<Result<JobSandbox>> create(bool internet_access, std::string purpose);
    // A command of a shell, as the sandbox's user.
    boost::asio::awaitable<Result<GuestOutput>> run(JobSandbox sandbox, std::string command,
                                                    std::map<std::string, std::string> env = {});
    boost::asio::awaitable<Status> upload(JobSandbox sandbox, std::filesystem::path file, std::string path) {
        return client_.upload(std::move(sandbox), {std::move(file), std::move(path)});
    }
    boost::asio::awaitable<Result<std::string>> download(JobSandbox sandbox, std::string path) {
        return client_.download(std::move(sandbox), std::move(path), std::size_t{1} << 20);
    }
    // What the operator sees: "egress" or "isolation".
    boost::asio::awaitable<Result<boost::json::value>> evidence(JobSandbox sandbox, std::string kind);
    // True when the server has forgotten it.
    boost::asio::awaitable<Result<bool>> destroy(JobSandbox sandbox);

  private:
    JobClient client_;
};

}  // namespace gb::cli
