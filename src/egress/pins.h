// SPDX-License-Identifier: Apache-2.0
// Which addresses a sandbox was told for a name. A connection that claims a name is believed if its address
// is one of them. Pure: the clock is passed in, in milliseconds that never go back (monotonic_ms() of
// base/clock.h). Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "egress/recent_map.h"
#include "net/cidr.h"

namespace gb::egress {

class Pins {
  public:
    static constexpr std::size_t kMaxNames = 4096, kMaxAddressesPerName = 64;
    // Programs keep addresses longer than their TTL says; after this time they should have asked again.
    static constexpr std::int64_t kKeepMs = 3'600'000;

    // The name was answered with these. Each address stays for max(TTL, 1 h) after the last answer that had
    // it; when there are too many, those go that were told longest ago.
    void told(std::string_view name, std::span<const net::Ipv4> addresses, std::uint32_t ttl_s,
              std::int64_t now_ms);
    [[nodiscard]] bool was_told(std::string_view name, net::Ipv4 address, std::int64_t now_ms);
    [[nodiscard]] std::size_t names() const { return pins_.size(); }

  private:
    struct Pin {
        net::Ipv4 address;
        std::int64_t until_ms;
    };
    RecentMap<std::vector<Pin>> pins_{kMaxNames};  // of a name: the last told at the end
};

}  // namespace gb::egress
