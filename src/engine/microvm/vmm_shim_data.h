// SPDX-License-Identifier: Apache-2.0
// The bytes of vmm_shim.so, which is built with the project and carried inside the program.
#pragma once

#include <string_view>

namespace gb::engine {

std::string_view vmm_shim();

}  // namespace gb::engine
