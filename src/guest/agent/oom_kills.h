// SPDX-License-Identifier: Apache-2.0
// How often the kernel has killed a process of this machine because memory was short.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gb::agent {

// From /proc/vmstat: kills for a control group's limit and for the whole machine. Nothing: this kernel does
// not count.
std::optional<std::uint64_t> parse_oom_kills(std::string_view vmstat);

class OomKills {
  public:
    void restart();        // forgets those of before now
    std::uint64_t take();  // new ones since the last call

  private:
    std::uint64_t seen_ = 0;
};

}  // namespace gb::agent
