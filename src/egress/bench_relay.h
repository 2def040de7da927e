// SPDX-License-Identifier: Apache-2.0
// For egress_bench: what carrying a connection costs whoever does it. Takes what is redirected to it,
// connects to where it was meant for, and moves the bytes with splice(2), two threads a connection: no name,
// no rule, no log.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::egress {

class BenchRelay {
  public:
    static constexpr int kPort = 9999;

    // In the network namespace of the calling thread.
    static Result<std::unique_ptr<BenchRelay>> start();
    ~BenchRelay();

  private:
    struct Connection {
        std::thread thread;
        std::atomic<bool> ended = false;
    };
    BenchRelay() = default;
    void accept();

    UniqueFd listener_;
    std::atomic<bool> stopping_ = false;
    std::list<Connection> connections_;
    std::thread acceptor_;
};

}  // namespace gb::egress
