// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/request_body.h"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace gb::interpreter {
namespace {

namespace json = boost::json;

Result<json::object> parse_body(std::string_view body) {
    boost::system::error_code error;
    json::value value = json::parse(body, error);
    if (error) return fail(ErrorCode::invalid_argument, "The body is not valid JSON: " + error.message());
    if (!value.is_object()) return fail(ErrorCode::invalid_argument, "The body is not a JSON object");
    return std::move(value.get_object());
}

Result<std::optional<std::string>> text_field(const json::object& body, std::string_view name) {
    const json::value* value = body.if_contains(name);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (!value->is_string())
        return fail(ErrorCode::invalid_argument, fmt::format("Field {} is not a string", name));
    return std::string(std::string_view(value->get_string()));
}

Result<EnvMap> env_field(const json::object& body, std::string_view name) {
    EnvMap env;
    const json::value* value = body.if_contains(name);
    if (value == nullptr || value->is_null()) return env;
    if (!value->is_object())
        return fail(ErrorCode::invalid_argument, fmt::format("Field {} is not an object", name));
    for (const auto& [key, item] : value->get_object()) {
        if (!item.is_string())
            return fail(ErrorCode::invalid_argument,
                        fmt::format("Field {}.{} is not a string", name, std::string_view(key)));
        env[std::string(key)] = std::string(std::string_view(item.get_string()));
    }
    return env;
}

}  // namespace

Result<ExecuteRequest> parse_execute_request(std::string_view text) {
    GB_TRY_ASSIGN(json::object body, parse_body(text));
    ExecuteRequest request;
    GB_TRY_ASSIGN(auto code, text_field(body, "code"));
    if (!code) return fail(ErrorCode::invalid_argument, "Field code is required");
    request.code = *std::move(code);
    GB_TRY_ASSIGN(request.context_id, text_field(body, "context_id"));
    GB_TRY_ASSIGN(request.language, text_field(body, "language"));
    GB_TRY_ASSIGN(request.env_vars, env_field(body, "env_vars"));
    if (const json::value* store = body.if_contains("store_history"); store != nullptr && !store->is_null()) {
        if (!store->is_bool()) return fail(ErrorCode::invalid_argument, "Field store_history is not a boolean");
        request.store_history = store->get_bool();
    }
    return request;
}

Result<CreateContextRequest> parse_create_context_request(std::string_view text) {
    CreateContextRequest request;
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return request;
    GB_TRY_ASSIGN(json::object body, parse_body(text));
    GB_TRY_ASSIGN(auto language, text_field(body, "language"));
    GB_TRY_ASSIGN(auto cwd, text_field(body, "cwd"));
    if (language && !language->empty()) request.language = *std::move(language);
    if (cwd) request.cwd = *std::move(cwd);
    return request;
}

}  // namespace gb::interpreter
