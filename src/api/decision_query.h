// SPDX-License-Identifier: Apache-2.0
// Which lines of a decision log are asked for, and picking them from its pages.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http/message.h"
#include "node/node.h"

namespace gb::api {

inline constexpr std::size_t kDecisionPage = 1000;  // lines that are read at once

struct DecisionQuery {
    std::optional<std::size_t> limit;
    std::optional<std::string> after;  // a cursor; "" is the beginning
    std::string verdict;               // allow, deny, end; empty: all
    bool follow = false;
};
Result<DecisionQuery> parse_decision_query(const http::Target& target);

// Whether a line of a log is of this verdict; an empty one is all of them.
bool is_of(std::string_view line, std::string_view verdict);

using PageSource = std::function<Result<DecisionPage>(const std::string& after, std::size_t limit)>;
// The first `limit` lines behind `after` that match; `next` is behind the last that was looked at, so that
// nothing is missed by asking for more with it.
Result<DecisionPage> first_lines(const PageSource& source, std::string after, std::size_t limit,
                                 std::string_view verdict);
// The last `limit` lines that match, of all that there are.
Result<DecisionPage> last_lines(const PageSource& source, std::size_t limit, std::string_view verdict);

}  // namespace gb::api
