// SPDX-License-Identifier: Apache-2.0
// The checksum of IP, TCP and ICMP (RFC 1071): the complement of the one's complement sum of 16-bit words.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gb {

// Adds bytes to a sum that began with 0; of several pieces only the last may be of an odd size.
inline std::uint32_t add_words(std::uint32_t sum, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (std::size_t i = 0; i < size; i += 2) {
        sum += static_cast<std::uint32_t>(bytes[i]) << 8;
        if (i + 1 < size) sum += bytes[i + 1];
    }
    return sum;
}

// In the host's order.
inline std::uint16_t internet_checksum(std::uint32_t sum) {
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

}  // namespace gb
