// SPDX-License-Identifier: Apache-2.0
// Identifiers and random bytes. Everything comes from getrandom(2).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gb {

std::string random_bytes(std::size_t count);
std::string random_id(std::size_t length);   // [a-z0-9], uniform
std::string random_hex(std::size_t bytes);   // 2 * bytes characters
std::string random_uuid();                   // version 4

std::string to_hex(std::string_view bytes);
std::string sandbox_id();   // "i" + 19 of [a-z0-9], contract 2.1
std::string template_id();  // 20 of [a-z0-9]

}  // namespace gb
