// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace gb {
namespace {

constexpr std::array<std::uint32_t, 256> kByteTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0U);
        table[byte] = value;
    }
    return table;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t with_instruction(std::span<const std::byte> data,
                                                                 std::uint32_t before) {
    std::uint64_t value = ~before;
    while (data.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data.data(), sizeof word);
        value = __builtin_ia32_crc32di(value, word);
        data = data.subspan(8);
    }
    auto last = static_cast<std::uint32_t>(value);
    for (const std::byte byte : data) last = __builtin_ia32_crc32qi(last, static_cast<unsigned char>(byte));
    return ~last;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t before) {
    std::uint32_t value = ~before;
    for (const std::byte byte : data)
        value = (value >> 8) ^ kByteTable[(value ^ static_cast<std::uint32_t>(byte)) & 0xff];
    return ~value;
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) {
#if defined(__x86_64__)
    static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
    if (has_instruction) return with_instruction(data, before);
#endif
    return crc32c_portable(data, before);
}

}  // namespace gb
