// SPDX-License-Identifier: Apache-2.0
// Lines of a decision log as people read them. Pure.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace gb::cli {

// Puts what the end of a connection says into the line of its beginning: "sent", "received". An end whose
// beginning is not among the lines stays.
boost::json::array merge_ends(const boost::json::array& lines);

std::string format_decisions(const boost::json::array& lines);  // a table
// The same columns, of widths that suit most lines, for lines that come one by one.
std::string decision_heading();
std::string format_decision(const boost::json::value& line);

}  // namespace gb::cli
