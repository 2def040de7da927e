// SPDX-License-Identifier: Apache-2.0
// What clients send to a process: written in the order it came, however many requests bring it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/result.h"
#include "guest/agent/notifier.h"

namespace gb::agent {

class InputQueue : public std::enable_shared_from_this<InputQueue> {
  public:
    using Descriptor = std::shared_ptr<asio::posix::stream_descriptor>;

    // A pipe is closed with its queue; a terminal is read elsewhere and stays open.
    enum class Kind { pipe, terminal };

    // A queue without a descriptor refuses everything.
    InputQueue(Kind kind, Descriptor descriptor) : kind_(kind), descriptor_(std::move(descriptor)) {}

    // Returns when all of it is written. A caller that is cancelled stops waiting, its data is written all
    // the same: half an input would be worse than either.
    awaitable<Status> write(std::string data);
    // End of file for the process, after what is queued.
    awaitable<Status> close();
    // The process has ended: everything that waits fails, and what comes later too.
    void shut();

    static constexpr std::size_t kMaxQueued = std::size_t{64} << 20;

  private:
    struct Item {
        std::string data;
        bool close = false;
        std::optional<Status> result;
        Notifier done;
        explicit Item(const asio::any_io_executor& executor) : done(executor) {}
    };

    awaitable<Status> enqueue(std::shared_ptr<Item> item);
    static awaitable<void> drain(std::shared_ptr<InputQueue> self);
    void complete(const Status& result);  // of the first item

    Kind kind_;
    Descriptor descriptor_;
    std::deque<std::shared_ptr<Item>> items_;
    std::size_t queued_ = 0;
    bool draining_ = false;
    bool closed_ = false;
};

}  // namespace gb::agent
