// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/language.h"

namespace gb::interpreter {

std::string normalize_language(std::string_view name) {
    constexpr std::string_view kBlanks = " \t\r\n\v\f";
    const std::size_t first = name.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    name = name.substr(first, name.find_last_not_of(kBlanks) - first + 1);
    std::string language;
    for (char c : name) language += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (language == "js") return "javascript";
    if (language == "ts") return "typescript";
    if (language == "python3") return "python";
    return language;
}

}  // namespace gb::interpreter
