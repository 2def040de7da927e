// SPDX-License-Identifier: Apache-2.0
// Guests that found the host's disk full are stopped, with nothing lost; this lets them try again every
// second, and tells the operator.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include "node/sandbox_machine.h"

namespace gb {

class DiskRetry {
  public:
    using Machines = std::function<std::vector<std::shared_ptr<SandboxMachine>>()>;

    // `machines` is called on the pool. The timer is the executor's: made, ended and run there or without it
    // running.
    DiskRetry(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, Machines machines);
    ~DiskRetry();  // waits for a round that is under way
    DiskRetry(const DiskRetry&) = delete;
    DiskRetry& operator=(const DiskRetry&) = delete;

  private:
    struct State;
    static void wait(const std::shared_ptr<State>& state);

    std::shared_ptr<State> state_;
};

}  // namespace gb
