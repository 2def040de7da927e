// SPDX-License-Identifier: Apache-2.0
#include "api/decision_query.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

using Lines = std::vector<std::string>;

std::string line(int n, const char* verdict) {
    return R"({"n":)" + std::to_string(n) + R"(,"verdict":")" + verdict + "\"}";
}

// Every third is denied; pages are shorter than asked for.
class Log {
  public:
    explicit Log(int count) {
        for (int i = 0; i < count; ++i) lines.push_back(line(i, i % 3 == 0 ? "deny" : "allow"));
    }
    PageSource source() {
        return [this](const std::string& after, std::size_t limit) -> Result<DecisionPage> {
            std::size_t at = after.empty() ? 0 : std::stoul(after);
            DecisionPage out;
            for (; at < lines.size() && out.lines.size() < std::min<std::size_t>(limit, 7); ++at)
                out.lines.push_back(lines[at]);
            out.next = std::to_string(at);
            return out;
        };
    }
    Lines lines;
};

Result<DecisionQuery> parse(const char* query) {
    return parse_decision_query(*http::parse_target(std::string("/x?") + query));
}

TEST(DecisionQuery, Parameters) {
    auto plain = parse("");
    ASSERT_TRUE(plain);
    EXPECT_FALSE(plain->limit || plain->after || plain->follow);
    auto all = parse("limit=5&verdict=deny&follow=true");
    ASSERT_TRUE(all);
    EXPECT_EQ(all->limit, 5U);
    EXPECT_EQ(all->verdict, "deny");
    EXPECT_TRUE(all->follow);
    EXPECT_EQ(parse("after=")->after, "");
    for (auto bad :
         {"limit=0", "limit=x", "limit=100001", "verdict=maybe", "follow=1", "follow=true&after=a&limit=1"})
        EXPECT_EQ(parse(bad).error().code, ErrorCode::invalid_argument) << bad;
}

TEST(DecisionQuery, TheVerdictIsTheFieldAndNotAText) {
    EXPECT_TRUE(is_of(line(1, "deny"), "deny"));
    EXPECT_TRUE(is_of(line(1, "deny"), ""));
    EXPECT_FALSE(is_of(R"({"verdict":"allow","name":"\"verdict\":\"deny\""})", "deny"));
}

TEST(DecisionQuery, PagesMissNothingAndRepeatNothing) {
    Log log(50);
    std::string after;
    Lines seen;
    for (;;) {
        auto page = first_lines(log.source(), after, 4, "deny");
        ASSERT_TRUE(page);
        if (page->lines.empty()) break;
        EXPECT_LE(page->lines.size(), 4U);
        seen.insert(seen.end(), page->lines.begin(), page->lines.end());
        after = page->next;
    }
    Lines wanted;
    for (const std::string& text : log.lines)
        if (is_of(text, "deny")) wanted.push_back(text);
    EXPECT_EQ(seen, wanted);
    log.lines.push_back(line(50, "deny"));
    EXPECT_EQ(first_lines(log.source(), after, 4, "deny")->lines, Lines{line(50, "deny")});
}

TEST(DecisionQuery, TheLastLinesAndWhatFollowsThem) {
    Log log(50);
    auto page = last_lines(log.source(), 3, "deny");
    ASSERT_TRUE(page);
    EXPECT_EQ(page->lines, (Lines{line(42, "deny"), line(45, "deny"), line(48, "deny")}));
    EXPECT_TRUE(first_lines(log.source(), page->next, 3, "")->lines.empty());
    EXPECT_EQ(last_lines(log.source(), 1000, "")->lines, log.lines);
    EXPECT_TRUE(last_lines(Log(0).source(), 3, "")->lines.empty());
}

TEST(DecisionQuery, ErrorsArePassedOn) {
    const PageSource broken = [](const std::string&, std::size_t) -> Result<DecisionPage> {
        return fail(ErrorCode::invalid_argument, "no cursor");
    };
    EXPECT_FALSE(first_lines(broken, "x", 3, ""));
    EXPECT_FALSE(last_lines(broken, 3, ""));
}

}  // namespace
}  // namespace gb::api
