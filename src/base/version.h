// SPDX-License-Identifier: Apache-2.0
// The version of the program, as it is in CMakeLists.txt and nowhere else.
#pragma once

#include <string_view>

namespace gb {

std::string_view version();  // "1.2.3"

}  // namespace gb
