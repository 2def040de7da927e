// SPDX-License-Identifier: Apache-2.0
// How soon the output of a program is read again. A program that prints line by line would make each line a message of its own,
// and a message costs far more than its bytes: what it prints within a moment goes out together. The first output after a
// silence goes out at once, and so does what comes faster than it can be gathered. On a slow processor a program that prints all
// the time seems to print now and then; so a pause is as long as it is whether or not anything was there after the last one.
#pragma once

#include <algorithm>
#include <chrono>

namespace gb::agent {

class Pace {
  public:
    using Clock = std::chrono::steady_clock;

    Pace() = default;
    ~Pace() { set(Clock::duration::zero()); }
    Pace(const Pace&) = delete;
    Pace& operator=(const Pace&) = delete;

    // Not before this is it read again.
    [[nodiscard]] Clock::time_point next() const { return last_read_ + pause_; }
    // Something is being gathered.
    [[nodiscard]] bool pauses(Clock::time_point now) const { return now < next(); }

    // After a read that found something; `full`: as much as one read takes, so that there may be more.
    void read(Clock::time_point now, bool full) {
        const bool goes_on = now - last_read_ < std::max(kSilence, 4 * longest());
        set(full ? Clock::duration::zero() : goes_on ? std::clamp(pause_ * 2, kShortest, longest()) : kShortest);
        last_read_ = now;
    }
    // What comes next goes out at once.
    void reset() { set(Clock::duration::zero()); }

    // The longest pause of any output: the more of them print at once, the longer, as each has less of the processor then.
    [[nodiscard]] static Clock::duration longest() { return std::clamp(busy_ * kForEachBusy, kLongestAlone, kLongestOfAll); }

  private:
    static constexpr Clock::duration kShortest = std::chrono::milliseconds(1);
    static constexpr Clock::duration kLongestAlone = std::chrono::milliseconds(16);
    static constexpr Clock::duration kForEachBusy = std::chrono::milliseconds(4);
    static constexpr Clock::duration kLongestOfAll = std::chrono::milliseconds(240);
    static constexpr Clock::duration kSilence = std::chrono::milliseconds(100);

    void set(Clock::duration pause) {
        busy_ += (pause > kShortest ? 1 : 0) - (pause_ > kShortest ? 1 : 0);
        pause_ = pause;
    }

    inline static thread_local int busy_ = 0;  // outputs that print on and on
    Clock::duration pause_ = Clock::duration::zero();
    Clock::time_point last_read_;
};

}  // namespace gb::agent
