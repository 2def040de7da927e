// SPDX-License-Identifier: Apache-2.0
// The packet rules of the host's own namespace for one server, as text for `nft -f -`. What a slot's rules
// let out is trusted no further here: from a slot nothing reaches the host itself, another slot or a closed
// range, even if the rules of the slot were gone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "net/cidr.h"

namespace gb::net {

struct HostRules {
    std::uint16_t tag = 0;
    Cidr block;                     // of all slots of this server
    std::span<const Cidr> ceiling;  // what this installation closes
};
std::string host_table(std::uint16_t tag);        // "glovebox_3fa9"
std::string host_link_prefix(std::uint16_t tag);  // "gb3fa9-"
std::uint16_t host_log_group(std::uint16_t tag);
// One transaction, which replaces the table of an earlier server: no packet passes between the old rules and
// the new.
std::string host_rules(const HostRules& options);

}  // namespace gb::net
