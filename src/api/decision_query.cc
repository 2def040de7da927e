// SPDX-License-Identifier: Apache-2.0
#include "api/decision_query.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/parameters.h"

namespace gb::api {
namespace {

constexpr std::int64_t kMostLines = 100'000;

}  // namespace

Result<DecisionQuery> parse_decision_query(const http::Target& target) {
    DecisionQuery out;
    GB_TRY_ASSIGN(auto limit, number_parameter(target, "limit", 1, kMostLines));
    if (limit) out.limit = static_cast<std::size_t>(*limit);
    if (const std::string* after = target.find("after")) out.after = *after;
    out.verdict = target.get("verdict");
    if (!out.verdict.empty() && out.verdict != "allow" && out.verdict != "deny" && out.verdict != "end")
        return bad_parameter("verdict", "'allow', 'deny' or 'end'");
    const std::string follow = target.get("follow");
    if (!follow.empty() && follow != "true" && follow != "false")
        return bad_parameter("follow", "true or false");
    out.follow = follow == "true";
    if (out.follow && out.after && out.limit)
        return bad_parameter("limit", "absent where a cursor is followed");
    return out;
}

bool is_of(std::string_view line, std::string_view verdict) {
    // Quotes inside of texts are escaped: only the field itself reads like this.
    return verdict.empty() || line.find(fmt::format(R"("verdict":"{}")", verdict)) != std::string_view::npos;
}

Result<DecisionPage> first_lines(const PageSource& source, std::string after, std::size_t limit,
                                 std::string_view verdict) {
    DecisionPage out{{}, std::move(after)};
    while (out.lines.size() < limit) {
        GB_TRY_ASSIGN(DecisionPage page, source(out.next, std::min(kDecisionPage, limit - out.lines.size())));
        const bool at_end = page.lines.empty();
        out.next = std::move(page.next);
        for (std::string& line : page.lines)
            if (is_of(line, verdict)) out.lines.push_back(std::move(line));
        if (at_end) break;
    }
    return out;
}

Result<DecisionPage> last_lines(const PageSource& source, std::size_t limit, std::string_view verdict) {
    std::deque<std::string> kept;
    std::string after;
    for (;;) {
        GB_TRY_ASSIGN(DecisionPage page, source(after, kDecisionPage));
        after = std::move(page.next);
        if (page.lines.empty()) break;
        for (std::string& line : page.lines) {
            if (!is_of(line, verdict)) continue;
            if (kept.size() == limit) kept.pop_front();
            kept.push_back(std::move(line));
        }
    }
    return DecisionPage{{std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end())},
                        std::move(after)};
}

}  // namespace gb::api
