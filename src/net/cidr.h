// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses and blocks as numbers, and the one parser for what clients write as an address or a block.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gb::net {

struct Ipv4 {
    std::uint32_t value = 0;  // host byte order: 1.2.3.4 is 0x01020304
    auto operator<=>(const Ipv4&) const = default;
};

std::optional<Ipv4> parse_ipv4(std::string_view text);  // four decimal parts, no leading zeros
std::string to_string(Ipv4 address);

struct Cidr {
    Ipv4 base;       // bits outside the mask are 0
    int length = 0;  // 0 to 32

    static Cidr of(Ipv4 address, int length);  // masks the address
    [[nodiscard]] Ipv4 first() const { return base; }
    [[nodiscard]] Ipv4 last() const;
    [[nodiscard]] bool contains(Ipv4 address) const { return address >= base && address <= last(); }
    [[nodiscard]] bool overlaps(const Cidr& other) const {
        return contains(other.base) || other.contains(base);
    }
    auto operator<=>(const Cidr&) const = default;
};

[[nodiscard]] inline bool within(std::span<const Cidr> blocks, Ipv4 address) {
    return std::ranges::any_of(blocks, [&](const Cidr& block) { return block.contains(address); });
}
std::string to_string(const Cidr& cidr);  // "1.2.3.0/24"; a single address without "/32"

// An IPv6 block that covers no IPv4-mapped address. Sandboxes have no IPv6, so nothing else of it matters.
struct Ipv6Block {
    bool operator==(const Ipv6Block&) const = default;
};

// An address or a block of either family. Host bits are cleared (RFC 4632). IPv4-mapped IPv6 (::ffff:a.b.c.d,
// a length of 96 or more) is the IPv4 address it stands for: that is what a program that uses it puts on the
// wire. Anything else, blanks, zones and leading zeros included: nullopt.
std::optional<std::variant<Cidr, Ipv6Block>> parse_cidr(std::string_view text);

struct Range {
    Ipv4 first, last;  // both included
    bool operator==(const Range&) const = default;
};

// The same addresses as sorted ranges with gaps between them.
std::vector<Range> merge(std::span<const Cidr> blocks);

}  // namespace gb::net
