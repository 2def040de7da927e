// SPDX-License-Identifier: Apache-2.0
// Names of languages as clients write them (contract 4.2).
#pragma once

#include <string>
#include <string_view>

namespace gb::interpreter {

std::string normalize_language(std::string_view name);  // trimmed, lower case, short forms spelled out

}  // namespace gb::interpreter
