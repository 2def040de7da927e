// SPDX-License-Identifier: Apache-2.0
// Reads the body of a create request of either generation (contract 2.5 NewSandbox, NewSandboxV2; 2.6). Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "control/sandboxes.h"

namespace gb::api {

enum class Generation { v1, v2 };  // they differ in default lifetime and in whether a sandbox is secured

// What this server cannot do yet is refused (invalid_argument), never ignored: a client that asked for a closed door must
// not get an open one.
Result<CreateSandbox> parse_create(std::string_view body, Generation generation);

}  // namespace gb::api
