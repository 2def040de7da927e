// SPDX-License-Identifier: Apache-2.0
// The JSON bodies that clients send. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/interpreter/hidden_call.h"

namespace gb::interpreter {

struct ExecuteRequest {
    std::string code;
    std::optional<std::string> context_id;
    std::optional<std::string> language;  // as the client wrote it
    EnvMap env_vars;
    bool store_history = true;  // as in the Jupyter protocol: false leaves the count of executions as it is
};
struct CreateContextRequest {
    std::string language = "python";
    std::string cwd;  // empty: the default
};

// invalid_argument, naming the field, when the body is not what it should be. Null counts as absent; unknown
// fields are ignored.
Result<ExecuteRequest> parse_execute_request(std::string_view body);
Result<CreateContextRequest> parse_create_context_request(std::string_view body);

}  // namespace gb::interpreter
