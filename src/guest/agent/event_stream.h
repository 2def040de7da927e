// SPDX-License-Identifier: Apache-2.0
// Carries what a process does to one client.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "guest/agent/process.h"
#include "guest/agent/rpc.h"

namespace gb::agent {

struct Following {
    std::shared_ptr<Process> process;
    std::shared_ptr<Subscriber> subscriber;
    std::chrono::seconds keepalive{90};
    // When the stream ends with deadline_exceeded.
    std::optional<Subscriber::Clock::time_point> deadline;
    // This stream started the process, whose own deadline is the stream's too: the end of a process that was
    // killed for it is told as deadline_exceeded.
    bool started_it = false;
};

// Sends the start event, then everything until the process ends, the deadline passes or the client goes away.
// The process does not notice any of it. Unsubscribes.
awaitable<void> follow(StreamWriter& writer, Following following);

}  // namespace gb::agent
