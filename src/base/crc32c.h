// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as iSCSI has it (RFC 3720, B.4): finds damage in files, keeps nobody out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gb {

// Of `data`, which follows what has the checksum `before` (0: nothing). With the processor's own instruction
// some GB/s.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0);

// The same without the instruction: for processors that lack it, and to compare with.
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t before = 0);

}  // namespace gb
