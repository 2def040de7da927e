// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/json_fields.h"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace gb::agent {
namespace {

std::string to_string(const boost::json::string& text) {
    return {text.data(), text.size()};
}

std::unexpected<Error> wrong_type(std::string_view name, std::string_view expected) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: must be {}", name, expected));
}

}  // namespace

Result<JsonFields> JsonFields::parse(std::string_view body) {
    JsonFields fields;
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return fields;
    boost::json::error_code ec;
    boost::json::value value = boost::json::parse({body.data(), body.size()}, ec);
    if (ec) return fail(ErrorCode::invalid_argument, "body: not valid JSON: " + ec.message());
    if (!value.is_object()) return wrong_type("body", "a JSON object");
    fields.object_ = std::move(value.as_object());
    return fields;
}

const boost::json::value* JsonFields::find(std::string_view name) const {
    const boost::json::value* value = object_.if_contains({name.data(), name.size()});
    return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<std::string>> JsonFields::text(std::string_view name) const {
    const boost::json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) return wrong_type(name, "a string");
    return to_string(value->as_string());
}

Result<std::optional<std::vector<std::string>>> JsonFields::strings(std::string_view name) const {
    const boost::json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) return wrong_type(name, "a list of strings");
    std::vector<std::string> out;
    for (const boost::json::value& item : value->as_array()) {
        if (!item.is_string()) return wrong_type(name, "a list of strings");
        out.push_back(to_string(item.as_string()));
    }
    return out;
}

Result<std::optional<std::map<std::string, std::string>>> JsonFields::string_map(
    std::string_view name) const {
    const boost::json::value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) return wrong_type(name, "an object of strings");
    std::map<std::string, std::string> out;
    for (const auto& [key, item] : value->as_object()) {
        if (!item.is_string())
            return wrong_type(fmt::format("{}.{}", name, std::string_view(key.data(), key.size())),
                              "a string");
        out.emplace(std::string(key.data(), key.size()), to_string(item.as_string()));
    }
    return out;
}

}  // namespace gb::agent
