// SPDX-License-Identifier: Apache-2.0
// A server of this program in a process of its own, that ends with its owner.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/api_client.h"

namespace gb::cli {

class ChildServer {
  public:
    struct Options {
        std::filesystem::path
            data_dir;  // made already; the configuration of the machine's own server is not read
        std::filesystem::path templates_dir;
        std::filesystem::path log;
        std::vector<std::string> arguments;  // further ones
    };
    // Starts it on a free port of the loopback. It is not ready yet.
    static Result<ChildServer> start(const Options& options);
    ChildServer(ChildServer&& other) noexcept;
    ChildServer& operator=(ChildServer&&) = delete;
    ChildServer(const ChildServer&) = delete;
    ChildServer& operator=(const ChildServer&) = delete;
    ~ChildServer();  // stop()

    // What it prints, non-blocking: the first line comes when it is ready, the end when it is not going to
    // be.
    [[nodiscard]] int output() const { return output_.get(); }
    // From that line. The error says why it ended instead.
    Result<ServerAddress> address_from(std::string_view output) const;

    // Ends it with its sandboxes, and waits for that, however long it takes. Blocks; `waiting` is called now
    // and then.
    void stop(const std::function<void()>& waiting = {});

  private:
    ChildServer() = default;
    pid_t pid_ = -1;
    UniqueFd output_;
    std::filesystem::path data_dir_, log_;
};

}  // namespace gb::cli
