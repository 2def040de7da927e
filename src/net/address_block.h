// SPDX-License-Identifier: Apache-2.0
// Which addresses the slots of one server use: a block of 10.192.0.0/10, a /30 of it for each slot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/cidr.h"

namespace gb::net {

// Sixteen bits that stand for an instance in names of interfaces, tables and routes: "3fa9". Never 0000.
std::uint16_t instance_tag(std::string_view instance);
std::string tag_text(std::uint16_t tag);

// All blocks of `length` bits (11 to 30) in the order in which this instance tries them: from a place that
// its id decides, upwards, around.
std::vector<Cidr> block_candidates(std::string_view instance, int length);

enum class Overlap {
    none,     // nobody routes any of it
    covered,  // a broader route covers it, such as 10.0.0.0/8 of a company network: usable when nothing else
              // is
    taken,    // a route or address lies in it, or is the same
};
Overlap overlap(const Cidr& block, const std::vector<Cidr>& used);

struct SlotAddresses {
    Ipv4 host, slot;  // the two ends of the slot's link to the host
};
constexpr int kSlotPrefix = 30;
std::size_t slot_count(const Cidr& block);
SlotAddresses slot_addresses(const Cidr& block, std::size_t number);
std::size_t slot_of(const Cidr& block, Ipv4 address);  // `address` must lie in the block

}  // namespace gb::net
