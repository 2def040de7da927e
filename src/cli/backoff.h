// SPDX-License-Identifier: Apache-2.0
// How long to wait before something is tried again: at once, then longer and longer.
#pragma once

#include <algorithm>
#include <chrono>

namespace gb::cli {

class Backoff {
  public:
    // The next wait. The first is none.
    std::chrono::milliseconds next() {
        const auto wait = next_;
        next_ = std::clamp<std::chrono::milliseconds>(next_ * 2, kLeast, kMost);
        return wait;
    }
    void reset() { next_ = std::chrono::milliseconds(0); }  // it went well

  private:
    static constexpr std::chrono::milliseconds kLeast{200}, kMost{10'000};
    std::chrono::milliseconds next_{0};
};

}  // namespace gb::cli
