// SPDX-License-Identifier: Apache-2.0
// Answers of the server as people read them. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace gb::cli {

struct Column {
    const char* title;
    const char* field;  // of each object of the list; "mask.prefix" is a field of a field
    enum class Align { left, right } align = Align::left;
};

// "-" for what is missing or null; lists joined by commas; control characters, which could move a terminal's
// cursor, as "?".
std::string field_text(const boost::json::value& object, std::string_view field);

// A line of titles and one for each element, each column as wide as it needs.
std::string format_table(std::span<const Column> columns, const boost::json::value& list);

// One line for each field.
std::string format_object(const boost::json::value& object);

}  // namespace gb::cli
