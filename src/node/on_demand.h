// SPDX-License-Identifier: Apache-2.0
// Prepares templates that somebody wants to start a sandbox of: in the background, one at a time, each in a process of its
// own, which the server does not wait for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "node/machinery.h"

namespace gb {

class OnDemand {
  public:
    // Prepares one template; blocks until that is done, or `stop` is requested.
    using Prepare = std::function<Status(const std::string& name, const std::stop_token& stop)>;
    using Clock = std::function<std::int64_t()>;  // milliseconds, never goes back

    // Without `prepare` it only tells what others prepare.
    OnDemand(std::filesystem::path templates, Prepare prepare, Clock clock = monotonic_ms);
    ~OnDemand();  // gives up what is under way; takes a second or two
    OnDemand(const OnDemand&) = delete;
    OnDemand& operator=(const OnDemand&) = delete;

    // What to answer who wants a template that has a definition and no build, which begins its preparation if nobody is
    // at it. unavailable: come again, the text says how far it is, or why it failed and when it is tried again; not_found
    // when nobody will prepare it. Any thread.
    Error ask(const std::string& name);

  private:
    struct Failure {
        std::string why;
        std::int64_t again_ms = 0;  // not before
        std::int64_t pause_ms = 0;
    };
    void run(const std::stop_token& stop);
    void settle(const std::string& name, const Status& done);

    std::filesystem::path templates_;
    Prepare prepare_;
    Clock clock_;
    std::mutex mutex_;
    std::condition_variable_any asked_;
    std::string at_work_;  // empty: nothing is being prepared here
    std::deque<std::string> queue_;
    std::map<std::string, Failure> failures_;
    std::jthread worker_;
};

// `<program> template prepare <name>` with the same folders, at a lower priority than the server.
OnDemand::Prepare prepare_by(std::filesystem::path program, const NodeOptions& options);

}  // namespace gb
