// Names of languages as clients write them (contract 4.2).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::interpreter {

std::string normalize_language(std::string_view name);  // trimmed, lower case, short forms spelled out

// unimplemented, with the languages there are, when no kernel runs `language` (normalised).
Status require_kernel_for(std::string_view language);

}  // namespace gb::interpreter
