// SPDX-License-Identifier: Apache-2.0
// How many sandboxes of a template are worth keeping warm: by use. Pure, time is given.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace gb {

// Of one template. `most` goes before `least`.
struct WarmLimits {
    std::size_t least = 0;  // also while nobody uses it
    std::size_t most = 0;   // 0: none is ever kept
    bool operator==(const WarmLimits&) const = default;
};

struct WarmOptions {
    WarmLimits standard;
    std::map<std::string, WarmLimits> templates;  // by name, instead of the standard

    [[nodiscard]] const WarmLimits& of(const std::string& name) const {
        auto found = templates.find(name);
        return found == templates.end() ? standard : found->second;
    }
    [[nodiscard]] bool any() const;  // whether anything may be kept warm at all
};

// Each create adds one, half of which is forgotten in a minute: creates at a steady rate come to what is
// asked for in about a minute and a half.
class WarmDemand {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::seconds kHalfLife{60};

    void add(Time now);
    [[nodiscard]] double at(Time now) const;

  private:
    double value_ = 0;  // at since_
    Time since_{};
};

// One create keeps one warm for two minutes.
std::size_t warm_wanted(double demand, const WarmLimits& limits);

}  // namespace gb
