// SPDX-License-Identifier: Apache-2.0
// The lines of one execution on their way from its context to its client. Both ends live on the server's
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guest/interpreter/wakeup.h"

namespace gb::interpreter {

class OutputStream {
  public:
    // `producer` is notified when the client has gone or has caught up.
    OutputStream(const asio::any_io_executor& executor, std::shared_ptr<Wakeup> producer);

    // For the context.
    void push(std::string_view line);  // dropped once abandoned
    void close();                      // behind the last line
    [[nodiscard]] bool abandoned() const { return abandoned_; }
    // More waits for the client than should be held in memory: produce nothing until this is false again.
    [[nodiscard]] bool congested() const { return congested_; }

    // For the answer. All that waits, "" at the end, nothing when `limit` has passed in silence.
    awaitable<std::optional<std::string>> take(std::chrono::milliseconds limit);
    void abandon();  // the client has gone

  private:
    std::shared_ptr<Wakeup> producer_;
    Wakeup consumer_;
    std::string pending_;
    bool closed_ = false;
    bool abandoned_ = false;
    bool congested_ = false;
};

}  // namespace gb::interpreter
