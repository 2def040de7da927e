// SPDX-License-Identifier: Apache-2.0
#include "net/address_block.h"

#include <fmt/format.h>

namespace gb::net {
namespace {

constexpr Cidr kAll{.base = {0x0AC00000}, .length = 10};  // 10.192.0.0/10

std::uint64_t fnv1a(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash ^ hash >> 32;
}

}  // namespace

std::uint16_t instance_tag(std::string_view instance) {
    auto tag = static_cast<std::uint16_t>(fnv1a(instance) >> 16 & 0xffff);
    return tag == 0 ? 1 : tag;
}

std::string tag_text(std::uint16_t tag) {
    return fmt::format("{:04x}", tag);
}

std::vector<Cidr> block_candidates(std::string_view instance, int length) {
    std::uint32_t count = 1U << (length - kAll.length);
    auto start = static_cast<std::uint32_t>(fnv1a(instance) % count);
    std::vector<Cidr> out;
    out.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t at = (start + i) % count;
        out.push_back({.base = {kAll.base.value + (at << (32 - length))}, .length = length});
    }
    return out;
}

Overlap overlap(const Cidr& block, const std::vector<Cidr>& used) {
    Overlap worst = Overlap::none;
    for (const Cidr& other : used) {
        if (other.length == 0 || !block.overlaps(other)) continue;  // a default route says nothing
        if (other.length > kAll.length) return Overlap::taken;
        worst = Overlap::covered;
    }
    return worst;
}

std::size_t slot_count(const Cidr& block) {
    return std::size_t{1} << (kSlotPrefix - block.length);
}

SlotAddresses slot_addresses(const Cidr& block, std::size_t number) {
    auto base = block.base.value + static_cast<std::uint32_t>(number) * 4;
    return {.host = {base + 1}, .slot = {base + 2}};
}

std::size_t slot_of(const Cidr& block, Ipv4 address) {
    return (address.value - block.base.value) / 4;
}

}  // namespace gb::net
