// SPDX-License-Identifier: Apache-2.0
// The outside world of the demo: an HTTP server in a network namespace of its own, at an address from the
// range that is reserved for examples (RFC 5737). It stands for the internet, and proves that there is a way
// to it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/server.h"

namespace gb::cli {

class DemoWorld {
  public:
    // Serves on `executor`, and writes a line to `log` for each request. Needs root. Nothing of it has a name
    // that would stay behind: the namespace, with the link to it, goes with this object or with the process.
    static Result<std::unique_ptr<DemoWorld>> start(const boost::asio::any_io_executor& executor,
                                                    const std::filesystem::path& log);
    ~DemoWorld();
    DemoWorld(const DemoWorld&) = delete;
    DemoWorld& operator=(const DemoWorld&) = delete;

    [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::string address() const { return endpoint_.address().to_string(); }

    static constexpr const char* kAnswer = "the outside world answers";

  private:
    DemoWorld(const boost::asio::any_io_executor& executor, UniqueFd log);
    Status open();

    UniqueFd log_, netns_;
    std::string link_;  // the host's end
    boost::asio::ip::tcp::endpoint endpoint_;
    http::Server server_;
};

}  // namespace gb::cli
