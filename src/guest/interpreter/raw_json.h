// SPDX-License-Identifier: Apache-2.0
// Takes a JSON object apart without decoding its values, so that they reach the client digit for digit: a
// decoded number may lose its last digits, an integer beyond 64 bits all of them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gb::interpreter {

struct RawMember {
    std::string key;         // decoded
    std::string_view value;  // JSON text, a part of the argument
};

// `object` must be valid JSON; anything that is not an object has no members.
std::vector<RawMember> raw_members(std::string_view object);
std::optional<std::string_view> raw_member(std::string_view object, std::string_view key);

std::optional<std::string> decoded_string(std::string_view json);  // nothing when it is not a string

// Valid JSON text in one line: line feeds can only stand between its tokens.
std::string on_one_line(std::string_view json);

}  // namespace gb::interpreter
