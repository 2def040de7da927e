// SPDX-License-Identifier: Apache-2.0
// How many decisions of a sandbox get a line of their own: as many as the packet rules log. What goes beyond
// is counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gb::egress {

class DecisionRate {
  public:
    static constexpr std::int64_t kPerSecond = 200, kBurst = 500;

    // Whether one more may be told now; `now_ms` never goes back.
    bool take(std::int64_t now_ms) {
        tokens_ = std::min(kBurst * 1000, tokens_ + (now_ms - last_ms_) * kPerSecond);
        last_ms_ = now_ms;
        if (tokens_ < 1000) {
            ++suppressed_;
            return false;
        }
        tokens_ -= 1000;
        return true;
    }
    // On any thread.
    [[nodiscard]] std::uint64_t suppressed() const { return suppressed_; }

  private:
    std::int64_t tokens_ = kBurst * 1000;  // thousandths
    std::int64_t last_ms_ = 0;
    std::atomic<std::uint64_t> suppressed_ = 0;
};

}  // namespace gb::egress
