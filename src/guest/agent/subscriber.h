// SPDX-License-Identifier: Apache-2.0
// One client that follows a process: a bounded queue between the process's pipes and the client's connection.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "guest/agent/notifier.h"

namespace gb::agent {

enum class OutputKind { standard_out, standard_error, terminal };

struct OutputEvent {
    OutputKind kind;
    std::string data;
};

struct EndEvent {
    int exit_code = 0;       // -1 when a signal ended it
    bool exited = false;     // by itself
    bool timed_out = false;  // killed at its deadline
    std::string status;      // "exit status 1", "signal: killed"
};

// Shared between the queues of all subscribers.
using Event = std::variant<OutputEvent, EndEvent>;
using EventPtr = std::shared_ptr<const Event>;

class Subscriber {
  public:
    using Clock = std::chrono::steady_clock;

    // `on_room` is called after each pop(): the process may have waited for it.
    Subscriber(const asio::any_io_executor& executor, std::function<void()> on_room)
        : wake_(executor), on_room_(std::move(on_room)) {}

    // The process's side.
    void push(const EventPtr& event);
    // Makes the client's stream end without a proper end: it has missed something.
    void cut();
    [[nodiscard]] std::size_t queued_bytes() const { return bytes_; }
    // Since when the client has taken nothing although something is there.
    [[nodiscard]] Clock::time_point last_progress() const { return last_progress_; }

    // The client's side.
    EventPtr pop();  // null when the queue is empty
    void made_progress() { last_progress_ = Clock::now(); }
    [[nodiscard]] bool empty() const { return queue_.empty(); }
    [[nodiscard]] bool is_cut() const { return cut_; }
    awaitable<void> wait_until(Clock::time_point when) { return wake_.wait_until(when); }

  private:
    Notifier wake_;
    std::deque<EventPtr> queue_;
    std::size_t bytes_ = 0;
    bool cut_ = false;
    Clock::time_point last_progress_ = Clock::now();
    std::function<void()> on_room_;
};

}  // namespace gb::agent
