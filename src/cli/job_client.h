// SPDX-License-Identifier: Apache-2.0
// What a job's client asks of a server and of the agent in its sandbox. Coroutines, so that an interruption
// is seen whatever is under way. Every call has a limit of its own: what a broken connection leaves open ends
// by itself.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "cli/api_client.h"
#include "cli/job_script.h"
#include "http/client.h"

namespace gb::cli {

// A sandbox, as its agent is spoken to.
struct JobSandbox {
    std::string id;
    std::string token;  // empty: it asks for none
    std::string user;   // whose commands run; empty: the template's
};

class JobClient {
  public:
    JobClient(ServerAddress server, ServerPlace place)
        : server_(std::move(server)), place_(std::move(place)) {}

    // Null when the answer has no body. The server's own message on an error.
    boost::asio::awaitable<Result<boost::json::value>> api(std::string method, std::string path,
                                                           std::string body = "");
    // All pages of a listing.
    boost::asio::awaitable<Result<boost::json::array>> list(std::string path);

    boost::asio::awaitable<Status> upload(JobSandbox sandbox, Upload file);
    // The content of a file in the sandbox; too_large when it has more than `limit` bytes.
    boost::asio::awaitable<Result<std::string>> download(JobSandbox sandbox, std::string path, std::size_t limit);

    // Runs a command in the sandbox and hands on what it prints; its exit code. An error of `on_event` ends
    // it with that. `limit`: after that the command is killed, and this is deadline_exceeded.
    using OnEvent = std::function<Status(const AgentEvent&)>;
    boost::asio::awaitable<Result<int>> run(JobSandbox sandbox, std::string message,
                                            std::chrono::milliseconds limit, OnEvent on_event);

    // Kills what was run with that tag, if it is still there.
    boost::asio::awaitable<Status> end(JobSandbox sandbox, std::string tag);

  private:
    boost::asio::awaitable<Result<http::ClientConnection::Response>> ask(std::string method, std::string path,
                                                                         std::string body);
    // Of a POST; without a content type of a GET.
    [[nodiscard]] http::RequestHead agent_head(const JobSandbox& sandbox, std::string path,
                                               std::string_view content_type) const;

    ServerAddress server_;
    ServerPlace place_;
};

}  // namespace gb::cli
