// SPDX-License-Identifier: Apache-2.0
#include "egress/synthetic_names.h"

namespace gb::egress {

bool SyntheticNames::is_synthetic(net::Ipv4 address) {
    return (address.value >> 17) == (kFirst >> 17);
}

net::Ipv4 SyntheticNames::address_of(const std::string& name) {
    if (auto known = by_name_.find(name); known != by_name_.end()) return {kFirst + known->second};
    const std::uint32_t place = next_;
    next_ = (next_ + 1) % kMost;
    if (auto old = by_place_.find(place); old != by_place_.end()) by_name_.erase(old->second);
    by_place_[place] = name;
    by_name_[name] = place;
    return {kFirst + place};
}

std::optional<std::string> SyntheticNames::name_of(net::Ipv4 address) const {
    if (address.value < kFirst) return std::nullopt;
    auto found = by_place_.find(address.value - kFirst);
    if (found == by_place_.end()) return std::nullopt;
    return found->second;
}

}  // namespace gb::egress
