// SPDX-License-Identifier: Apache-2.0
// Wakes one waiting coroutine of the same thread: "look at your condition again".
#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error_tuple.h"

namespace gb::agent {

namespace asio = boost::asio;
using asio::awaitable;

class Notifier {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Notifier(const asio::any_io_executor& executor) : timer_(executor) {}

    void notify() { timer_.cancel(); }
    // At most one coroutine may wait at a time. Returns at `when`, after notify(), or when the waiter is
    // cancelled.
    awaitable<void> wait_until(Clock::time_point when) {
        timer_.expires_at(when);
        co_await timer_.async_wait(kErrorTuple);
    }
    awaitable<void> wait() { return wait_until(Clock::time_point::max()); }

  private:
    asio::steady_timer timer_;
};

}  // namespace gb::agent
