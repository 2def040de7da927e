// SPDX-License-Identifier: Apache-2.0
#include "egress/pins.h"

#include <algorithm>

namespace gb::egress {

void Pins::told(std::string_view name, std::span<const net::Ipv4> addresses, std::uint32_t ttl_s,
                std::int64_t now_ms) {
    if (addresses.empty()) return;
    std::vector<Pin> pins;
    if (auto* old = pins_.find(name)) pins = std::move(*old);
    std::erase_if(pins, [&](const Pin& pin) {
        return pin.until_ms <= now_ms || std::ranges::find(addresses, pin.address) != addresses.end();
    });
    const std::int64_t until_ms = now_ms + std::max(std::int64_t{ttl_s} * 1000, kKeepMs);
    for (net::Ipv4 address : addresses) pins.push_back({address, until_ms});
    if (pins.size() > kMaxAddressesPerName)
        pins.erase(pins.begin(), pins.end() - static_cast<std::ptrdiff_t>(kMaxAddressesPerName));
    pins_.put(name, std::move(pins));
}

bool Pins::was_told(std::string_view name, net::Ipv4 address, std::int64_t now_ms) {
    const auto* pins = pins_.find(name);
    return pins && std::ranges::any_of(*pins, [&](const Pin& pin) {
               return pin.address == address && now_ms < pin.until_ms;
           });
}

}  // namespace gb::egress
