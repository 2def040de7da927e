// SPDX-License-Identifier: Apache-2.0
// Addresses that stand for names, for guests whose connections end at a proxy that resolves names itself: the
// guest is told one, connects to it, and the name is known. Of 198.18.0.0/15, which no network routes (RFC
// 2544). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "net/cidr.h"

namespace gb::egress {

class SyntheticNames {
  public:
    static constexpr std::uint32_t kFirst = 0xC6120001;  // 198.18.0.1
    static constexpr std::uint32_t kMost = 65536;        // then the oldest names lose their addresses

    static bool is_synthetic(net::Ipv4 address);
    // The same for as long as it is not forgotten.
    net::Ipv4 address_of(const std::string& name);
    [[nodiscard]] std::optional<std::string> name_of(net::Ipv4 address) const;

  private:
    std::unordered_map<std::string, std::uint32_t> by_name_;
    std::unordered_map<std::uint32_t, std::string> by_place_;
    std::uint32_t next_ = 0;
};

}  // namespace gb::egress
