// SPDX-License-Identifier: Apache-2.0
#include "api/fields.h"

#include <algorithm>
#include <cmath>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace gb::api {
namespace json = boost::json;

namespace {

// The library reads 2e722 as infinity, which no JSON can say again.
bool is_finite(const json::value& value) {
    if (const auto* number = value.if_double()) return std::isfinite(*number);
    if (const auto* list = value.if_array()) return std::ranges::all_of(*list, is_finite);
    if (const auto* object = value.if_object())
        return std::ranges::all_of(*object, [](const auto& member) { return is_finite(member.value()); });
    return true;
}

}  // namespace

Result<json::object> parse_object(std::string_view body, bool may_be_empty) {
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        if (may_be_empty) return json::object();
        return fail(ErrorCode::invalid_argument, "validation error: the request needs a JSON body");
    }
    boost::system::error_code ec;
    json::parse_options options;
    options.max_depth = 64;
    json::value value = json::parse(json::string_view(body.data(), body.size()), ec, {}, options);
    if (ec)
        return fail(ErrorCode::invalid_argument, fmt::format("validation error: the body is not JSON: {}", ec.message()));
    if (!value.is_object())
        return fail(ErrorCode::invalid_argument, "validation error: the body must be a JSON object");
    if (!is_finite(value))
        return fail(ErrorCode::invalid_argument, "validation error: the body holds a number that is too large");
    return std::move(value.get_object());
}

const json::value* Fields::find(std::string_view name) const {
    const json::value* value = object_.if_contains(json::string_view(name.data(), name.size()));
    return value == nullptr || value->is_null() ? nullptr : value;
}

std::unexpected<Error> Fields::wrong(std::string_view name, std::string_view wanted) const {
    return fail(ErrorCode::invalid_argument, fmt::format("validation error: field '{}{}' must be {}", prefix_, name, wanted));
}

Result<std::optional<std::string>> Fields::text(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) return wrong(name, "a string");
    return std::string(value->get_string());
}

Result<std::string> Fields::required_text(std::string_view name) const {
    GB_TRY_ASSIGN(auto value, text(name));
    if (!value || value->empty())
        return fail(ErrorCode::invalid_argument, fmt::format("validation error: field '{}{}' is required", prefix_, name));
    return *std::move(value);
}

Result<std::optional<bool>> Fields::boolean(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_bool()) return wrong(name, "true or false");
    return value->get_bool();
}

Result<std::optional<std::int64_t>> Fields::integer(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    std::int64_t number = 0;
    if (value->is_int64()) {
        number = value->get_int64();
    } else if (value->is_double() && std::floor(value->get_double()) == value->get_double() &&
               std::abs(value->get_double()) < 9e15) {
        number = static_cast<std::int64_t>(value->get_double());
    } else {
        return wrong(name, "a whole number");
    }
    if (number > INT32_MAX || number < INT32_MIN) return wrong(name, "a whole number of 32 bits");
    return number;
}

Result<std::vector<std::string>> Fields::texts(std::string_view name) const {
    std::vector<std::string> out;
    const json::value* value = find(name);
    if (value == nullptr) return out;
    if (!value->is_array()) return wrong(name, "a list of strings");
    for (const json::value& item : value->get_array()) {
        if (!item.is_string()) return wrong(name, "a list of strings");
        out.emplace_back(item.get_string());
    }
    return out;
}

Result<std::map<std::string, std::string>> Fields::text_map(std::string_view name) const {
    std::map<std::string, std::string> out;
    const json::value* value = find(name);
    if (value == nullptr) return out;
    if (!value->is_object()) return wrong(name, "an object of strings");
    for (const auto& item : value->get_object()) {
        if (!item.value().is_string()) return wrong(fmt::format("{}.{}", name, std::string_view(item.key())), "a string");
        out.emplace(item.key(), item.value().get_string());
    }
    return out;
}

Result<const json::object*> Fields::object(std::string_view name) const {
    const json::value* value = find(name);
    if (value == nullptr) return nullptr;
    if (!value->is_object()) return wrong(name, "an object");
    return &value->get_object();
}

}  // namespace gb::api
