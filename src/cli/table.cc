// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace gb::cli {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) {
    if (value.is_null()) return "-";
    std::string out;
    if (value.is_string()) {
        out = std::string(value.get_string());
    } else if (value.is_double()) {
        out = fmt::format("{:.3f}", value.get_double());
        out.erase(out.find_last_not_of('0') + 1);
        if (out.ends_with('.')) out.pop_back();
    } else if (value.is_array()) {
        for (const json::value& item : value.get_array()) out += (out.empty() ? "" : ", ") + text_of(item);
        if (out.empty()) out = "-";
    } else if (value.is_object()) {
        for (const auto& item : value.get_object())
            out += (out.empty() ? "" : ", ") + std::string(std::string_view(item.key())) + " " + text_of(item.value());
        if (out.empty()) out = "-";
    } else {
        out = json::serialize(value);
    }
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return out;
}

// Characters, not bytes.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string field_text(const json::value& object, std::string_view field) {
    const std::size_t dot = field.find('.');
    const json::value* value =
        object.is_object() ? object.get_object().if_contains(field.substr(0, dot)) : nullptr;
    if (value == nullptr) return "-";
    return dot == std::string_view::npos ? text_of(*value) : field_text(*value, field.substr(dot + 1));
}

std::string format_table(std::span<const Column> columns, const json::value& list) {
    std::vector<std::vector<std::string>> lines(1);
    for (const Column& column : columns) lines[0].emplace_back(column.title);
    if (list.is_array())
        for (const json::value& item : list.get_array()) {
            std::vector<std::string> line;
            for (const Column& column : columns) line.push_back(field_text(item, column.field));
            lines.push_back(std::move(line));
        }
    std::vector<std::size_t> widths(columns.size());
    for (const auto& line : lines)
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
    std::string out;
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string space(widths[i] - width_of(line[i]), ' ');
            if (i > 0) out += "  ";
            out += columns[i].align == Column::Align::right ? space + line[i] : line[i] + space;
        }
        out.erase(out.find_last_not_of(' ') + 1);
        out += '\n';
    }
    return out;
}

std::string format_object(const json::value& object) {
    std::string out;
    if (!object.is_object()) return out;
    for (const auto& item : object.get_object())
        out += fmt::format("{:<20}{}\n", std::string_view(item.key()), text_of(item.value()));
    return out;
}

}  // namespace gb::cli
