// SPDX-License-Identifier: Apache-2.0
#include "node/warm_demand.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace gb {
namespace {

constexpr double kForgotten = 0.25;

}  // namespace

bool WarmOptions::any() const {
    return standard.most > 0 || std::ranges::any_of(templates | std::views::values,
                                                    [](const WarmLimits& limits) { return limits.most > 0; });
}

double WarmDemand::at(Time now) const {
    const double age = std::chrono::duration<double>(now - since_).count();
    if (value_ == 0 || age <= 0) return value_;
    return value_ * std::exp2(-age / std::chrono::duration<double>(kHalfLife).count());
}

void WarmDemand::add(Time now) {
    value_ = at(now) + 1;
    since_ = std::max(since_, now);
}

std::size_t warm_wanted(double demand, const WarmLimits& limits) {
    // Bounded before it is a whole number: more than any limit is as good as too many.
    const double by_use = std::clamp(std::ceil(demand - kForgotten), 0.0, static_cast<double>(limits.most));
    return std::min(std::max(static_cast<std::size_t>(by_use), limits.least), limits.most);
}

}  // namespace gb
