// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/interrupts.h"

#include <algorithm>

namespace gb::interpreter {
namespace {

constexpr std::int64_t kFirstGap = 1'000;
constexpr std::int64_t kLongestGap = 8'000;
constexpr std::int64_t kGiveUp = 60'000;

}  // namespace

InterruptSchedule::Step InterruptSchedule::next(std::int64_t now) {
    if (first_ < 0) {
        first_ = due_ = now;
        gap_ = kFirstGap;
    }
    if (now < due_) return Step::wait;
    if (now - first_ >= kGiveUp) return Step::give_up;
    due_ = now + gap_;
    gap_ = std::min(gap_ * 2, kLongestGap);
    return Step::interrupt;
}

std::chrono::milliseconds InterruptSchedule::until_next(std::int64_t now) const {
    return std::chrono::milliseconds(std::max<std::int64_t>(due_ - now, 1));
}

}  // namespace gb::interpreter
