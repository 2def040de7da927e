// SPDX-License-Identifier: Apache-2.0
#include "control/public_address.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gb {
namespace {

namespace ip = boost::asio::ip;

struct Block {
    std::uint32_t base;
    int length;
};

constexpr std::array kClosed{
    Block{0x00000000, 8},   // 0.0.0.0/8, "this network": the host itself
    Block{0x0A000000, 8},   // 10.0.0.0/8
    Block{0x64400000, 10},  // 100.64.0.0/10, shared by carriers
    Block{0x7F000000, 8},   // 127.0.0.0/8
    Block{0xA9FE0000, 16},  // 169.254.0.0/16, with the metadata service of clouds
    Block{0xAC100000, 12},  // 172.16.0.0/12
    Block{0xC0000000, 24},  // 192.0.0.0/24, of protocols
    Block{0xC0000200, 24},  // 192.0.2.0/24, for documents
    Block{0xC0586300, 24},  // 192.88.99.0/24, relays that are no more
    Block{0xC0A80000, 16},  // 192.168.0.0/16
    Block{0xC6120000, 15},  // 198.18.0.0/15, for measurements
    Block{0xC6336400, 24},  // 198.51.100.0/24, for documents
    Block{0xCB007100, 24},  // 203.0.113.0/24, for documents
    Block{0xE0000000, 4},   // 224.0.0.0/4, groups
    Block{0xF0000000, 4},   // 240.0.0.0/4, reserved, with the broadcast address
};

bool is_public(std::uint32_t address) {
    return std::ranges::none_of(
        kClosed, [&](const Block& block) { return (address ^ block.base) >> (32 - block.length) == 0; });
}

std::uint32_t number_at(const ip::address_v6::bytes_type& bytes, std::size_t at) {
    return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
           std::uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

bool is_public(const ip::address_v6& address) {
    const auto bytes = address.to_bytes();
    const std::uint32_t first = number_at(bytes, 0), second = number_at(bytes, 4),
                        third = number_at(bytes, 8), last = number_at(bytes, 12);
    if (first == 0 && second == 0 && third == 0x0000FFFF)
        return is_public(last);  // ::ffff:0:0/96, IPv4-mapped
    if (first == 0x0064FF9B && second == 0 && third == 0) return is_public(last);  // 64:ff9b::/96, by a NAT64
    if (first >> 16 == 0x2002) return is_public(first << 16 | second >> 16);       // 2002::/16, 6to4
    if (first >> 29 != 1) return false;                  // all that is routed globally lies in 2000::/3
    if (first >> 9 == 0x20010000U >> 9) return false;    // 2001::/23, of protocols, with Teredo
    if (first == 0x20010DB8) return false;               // 2001:db8::/32, for documents
    if (first >> 12 == 0x3FFF0000U >> 12) return false;  // 3fff::/20, for documents
    return true;
}

}  // namespace

bool is_public_address(const ip::address& address) {
    return address.is_v4() ? is_public(address.to_v4().to_uint()) : is_public(address.to_v6());
}

}  // namespace gb
