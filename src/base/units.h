// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gb {

inline constexpr std::uint64_t kMib = std::uint64_t{1} << 20;  // bytes

}  // namespace gb
