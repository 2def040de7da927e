// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <boost/json/object.hpp>

namespace gb::interpreter {

// The text of a member, empty where it is absent or of another type. It lives as long as `object` does unchanged.
inline std::string_view text_of(const boost::json::object& object, std::string_view name) {
    const boost::json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace gb::interpreter
