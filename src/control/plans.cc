// SPDX-License-Identifier: Apache-2.0
#include "control/plans.h"

#include <algorithm>

namespace gb {

Plans::Plans() {
    plans_.push_back({.name = "hobby"});
    plans_.push_back({.name = "pro",
                      .max_sandboxes = 100,
                      .max_lifetime_s = 24 * 3600,
                      .creates_per_second = 5,
                      .max_disk_mib = 20'480});
}

void Plans::set(Plan plan) {
    auto found = std::ranges::find(plans_, plan.name, &Plan::name);
    if (found == plans_.end())
        plans_.push_back(std::move(plan));
    else
        *found = std::move(plan);
}

const Plan* Plans::find(std::string_view name) const {
    auto found = std::ranges::find(plans_, name, &Plan::name);
    return found == plans_.end() ? nullptr : &*found;
}

const Plan& Plans::of(std::string_view name) const {
    const Plan* found = find(name);
    return found != nullptr ? *found : *std::ranges::min_element(plans_, {}, &Plan::max_sandboxes);
}

}  // namespace gb
