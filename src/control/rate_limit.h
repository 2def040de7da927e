// SPDX-License-Identifier: Apache-2.0
// A token bucket: so many at once, so many a second on average. Time is given, so it is pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gb {

class RateLimit {
  public:
    RateLimit() = default;
    RateLimit(double per_second, double burst) : per_second_(per_second), burst_(burst), left_(burst) {}

    // Follows a changed configuration; what is left stays, up to the new burst.
    void configure(double per_second, double burst) {
        left_ = std::min(burst, left_ + std::max(0.0, burst - burst_));
        per_second_ = per_second;
        burst_ = burst;
    }

    // Takes one, or so many, or says no.
    bool take(std::int64_t now_ms, double amount = 1) {
        refill(now_ms);
        if (left_ < amount) return false;
        left_ -= amount;
        return true;
    }

    // Whole seconds until take() may say yes, at least 1.
    [[nodiscard]] int retry_after_s() const {
        if (per_second_ <= 0) return 3600;
        return static_cast<int>(std::clamp(std::ceil((1 - left_) / per_second_), 1.0, 3600.0));
    }

  private:
    void refill(std::int64_t now_ms) {
        if (last_ms_ != 0 && now_ms > last_ms_)
            left_ = std::min(burst_, left_ + static_cast<double>(now_ms - last_ms_) / 1000 * per_second_);
        last_ms_ = now_ms;
    }

    double per_second_ = 0;
    double burst_ = 0;
    double left_ = 0;
    std::int64_t last_ms_ = 0;
};

}  // namespace gb
