// SPDX-License-Identifier: Apache-2.0
#include "cli/decision_table.h"

#include <array>
#include <map>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/table.h"

namespace gb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kDecisionColumns{Column{"TIME", "time"},
                              Column{"WHAT", "verdict"},
                              Column{"PROTO", "protocol"},
                              Column{"DESTINATION", "destination"},
                              Column{"PORT", "port", Column::Align::right},
                              Column{"RULE", "rule"},
                              Column{"SENT", "sent", Column::Align::right},
                              Column{"RECEIVED", "received", Column::Align::right}};
constexpr std::array<int, kDecisionColumns.size()> kWidths{24, 5, 5, 32, 5, 24, 10, 10};

// Name and address, or what there is of them.
json::value with_destination(const json::value& line) {
    if (!line.is_object()) return line;
    json::object out = line.get_object();
    const std::string name = field_text(line, "name"), address = field_text(line, "address");
    out["destination"] = name == "-"      ? address
                         : address == "-" ? name
                                          : fmt::format("{} ({})", name, address);
    return out;
}

// What the lines of one connection have in common.
std::string connection_of(const json::value& line) {
    std::string out;
    for (const char* field : {"protocol", "address", "port", "source_port"})
        out += field_text(line, field) + " ";
    return out;
}

}  // namespace

json::array merge_ends(const json::array& lines) {
    json::array out;
    std::map<std::string, std::size_t> open;  // where the beginnings are
    for (const json::value& line : lines) {
        const std::string verdict = field_text(line, "verdict");
        const std::string connection = connection_of(line);
        auto begun = open.find(connection);
        if (verdict == "end" && begun != open.end()) {
            json::object& row = out[begun->second].get_object();
            for (const char* field : {"sent", "received"})
                if (const json::value* bytes = line.get_object().if_contains(field)) row[field] = *bytes;
            open.erase(begun);
            continue;
        }
        if (verdict == "allow") open[connection] = out.size();
        out.push_back(line);
    }
    return out;
}

std::string format_decisions(const json::array& lines) {
    json::array rows;
    for (const json::value& line : lines) rows.push_back(with_destination(line));
    return format_table(kDecisionColumns, rows);
}

std::string decision_heading() {
    json::object titles;
    for (const Column& column : kDecisionColumns) titles[column.field] = column.title;
    titles["name"] = titles["destination"];
    return format_decision(titles);
}

std::string format_decision(const json::value& line) {
    const json::value row = with_destination(line);
    std::string out;
    for (std::size_t i = 0; i < kDecisionColumns.size(); ++i) {
        const std::string text = field_text(row, kDecisionColumns[i].field);
        if (i > 0) out += "  ";
        out += kDecisionColumns[i].align == Column::Align::right ? fmt::format("{:>{}}", text, kWidths[i])
                                                         : fmt::format("{:<{}}", text, kWidths[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
}

}  // namespace gb::cli
