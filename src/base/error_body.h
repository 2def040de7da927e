// SPDX-License-Identifier: Apache-2.0
// The body of an answer that refuses, the same everywhere (contract 2.1). Pure.
#pragma once

#include <string>
#include <string_view>

namespace gb {

// {"code":<HTTP status>,"message":"…"}
std::string error_body(int status, std::string_view message);

}  // namespace gb
