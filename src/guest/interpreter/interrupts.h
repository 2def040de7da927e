// SPDX-License-Identifier: Apache-2.0
// When to interrupt a cell whose client has gone. The first SIGINT can come too early (the kernel has the
// request but does not run it yet, and ignores the signal) or be swallowed by an `except`; so it is repeated,
// and a kernel that is deaf for a minute is given up.
#pragma once

#include <chrono>
#include <cstdint>

namespace gb::interpreter {

class InterruptSchedule {
  public:
    enum class Step { wait, interrupt, give_up };

    // `now` is monotonic, in milliseconds. The first call starts the clock.
    Step next(std::int64_t now);
    [[nodiscard]] std::chrono::milliseconds until_next(std::int64_t now) const;

  private:
    std::int64_t first_ = -1;
    std::int64_t due_ = -1;
    std::int64_t gap_ = 0;
};

}  // namespace gb::interpreter
