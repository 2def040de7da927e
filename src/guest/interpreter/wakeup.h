// SPDX-License-Identifier: Apache-2.0
// Waiting inside one io_context thread: a coroutine sleeps until somebody on the same thread rouses it.
#pragma once

#include <chrono>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error_tuple.h"

namespace gb::interpreter {

namespace asio = boost::asio;
using asio::awaitable;

// For one waiter. A notify() that comes while nobody waits is kept for the next wait.
class Wakeup {
  public:
    explicit Wakeup(const asio::any_io_executor& executor) : timer_(executor) {}

    void notify() {
        notified_ = true;
        timer_.cancel();
    }
    // False when the time ran out first.
    awaitable<bool> wait_for(std::chrono::milliseconds limit) {
        if (!notified_) {
            timer_.expires_after(limit);
            co_await timer_.async_wait(kErrorTuple);
        }
        co_return std::exchange(notified_, false);
    }
    awaitable<void> wait() {
        while (!co_await wait_for(std::chrono::hours(1))) {
        }
    }

  private:
    asio::steady_timer timer_;
    bool notified_ = false;
};

// For any number of waiters; once open it stays open.
class Gate {
  public:
    explicit Gate(const asio::any_io_executor& executor)
        : timer_(executor, asio::steady_timer::time_point::max()) {}

    void open() {
        open_ = true;
        timer_.cancel();
    }
    [[nodiscard]] bool is_open() const { return open_; }
    awaitable<void> wait() {
        if (!open_) co_await timer_.async_wait(kErrorTuple);
    }

  private:
    asio::steady_timer timer_;
    bool open_ = false;
};

}  // namespace gb::interpreter
