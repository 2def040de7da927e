// SPDX-License-Identifier: Apache-2.0
#include "control/listing.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace gb {
namespace {

SandboxRecord record(std::string id, std::int64_t started, std::map<std::string, std::string> metadata = {}) {
    SandboxRecord out;
    out.id = std::move(id);
    out.started_ms = started;
    out.state = SandboxState::running;
    out.template_id = "tid";
    out.template_name = "base";
    out.metadata = std::move(metadata);
    return out;
}

Result<ListPage> list_page(const std::vector<SandboxRecord>& records, const ListQuery& query) {
    std::vector<const SandboxRecord*> pointers;
    for (const SandboxRecord& record : records) pointers.push_back(&record);
    return gb::list_page(std::move(pointers), query);
}

std::vector<std::string> ids(const ListPage& page) {
    std::vector<std::string> out;
    for (const auto& item : page.items) out.push_back(item.id);
    return out;
}

TEST(Listing, NewestFirstAndPagedWithoutGapOrRepeat) {
    std::vector<SandboxRecord> all;
    for (int i = 0; i < 7; ++i) all.push_back(record("i" + std::to_string(i), 1000 + i / 2));
    for (bool ascending : {false, true}) {
        ListQuery query;
        query.limit = 2;
        query.ascending = ascending;
        std::vector<std::string> seen;
        int pages = 0;
        do {
            auto page = list_page(all, query);
            ASSERT_TRUE(page);
            EXPECT_EQ(page->running, 7U);
            for (auto& id : ids(*page)) seen.push_back(id);
            query.next_token = page->next_token;
        } while (!query.next_token.empty() && ++pages < 10);
        std::vector<std::string> expected{"i0", "i1", "i2", "i3", "i4", "i5", "i6"};
        if (!ascending) std::ranges::reverse(expected);
        EXPECT_EQ(seen, expected);
    }
}

TEST(Listing, TheLastPageHasNoToken) {
    ListQuery query;
    query.limit = 2;
    auto page = list_page({record("a", 1), record("b", 2)}, query);
    ASSERT_TRUE(page);
    EXPECT_EQ(page->next_token, "");
}

TEST(Listing, ATokenOfTheOtherOrderOrGarbageIsRefused) {
    ListQuery query;
    query.limit = 1;
    auto page = list_page({record("a", 1), record("b", 2)}, query);
    ASSERT_TRUE(page);
    query.next_token = page->next_token;
    query.ascending = true;
    EXPECT_FALSE(gb::list_page({}, query));
    query.next_token = "!!!";
    EXPECT_FALSE(gb::list_page({}, query));
    query.next_token = "YWJj";
    EXPECT_FALSE(gb::list_page({}, query));
}

TEST(Listing, StartedAfterIsInclusive) {
    ListQuery query;
    query.started_after_ms = 1500;
    EXPECT_EQ(ids(*list_page({record("a", 1499), record("b", 1500), record("c", 1501)}, query)),
              (std::vector<std::string>{"c", "b"}));
}

TEST(Listing, FiltersAreAllRequired) {
    auto a = record("a", 1, {{"k", "v"}, {"x", "y"}});
    auto b = record("b", 2, {{"k", "v"}});
    auto c = record("c", 3, {{"k", "other"}});
    ListQuery query;
    query.metadata = {{"k", "v"}, {"x", "y"}};
    EXPECT_EQ(ids(*list_page({a, b, c}, query)), (std::vector<std::string>{"a"}));
    query.metadata = {};
    query.template_ref = "nope";
    EXPECT_TRUE(list_page({a, b, c}, query)->items.empty());
    query.template_ref = "tid";
    EXPECT_EQ(list_page({a, b, c}, query)->items.size(), 3U);
}

TEST(Listing, WhatIsMadeOrEndsIsHiddenAndTransitionsCountAsPaused) {
    using enum SandboxState;
    std::vector<SandboxRecord> all;
    for (SandboxState state : {creating, running, pausing, paused, resuming, killing}) {
        all.push_back(record(std::string(1, static_cast<char>('a' + all.size())), 1));
        all.back().state = state;
    }
    ListQuery query;
    EXPECT_EQ(ids(*list_page(all, query)), (std::vector<std::string>{"e", "d", "c", "b"}));
    EXPECT_EQ(list_page(all, query)->running, 1U);
    query.running = false;
    EXPECT_EQ(ids(*list_page(all, query)), (std::vector<std::string>{"e", "d", "c"}));
    EXPECT_EQ(list_page(all, query)->running, 1U);
    query = {.paused = false};
    EXPECT_EQ(ids(*list_page(all, query)), (std::vector<std::string>{"b"}));
}

TEST(MetadataFilter, UndoesTheLayersThatClientsPutOn) {
    // After ordinary query decoding of a%3Db%252520c%26d%3D%2525C3%2525A9%252526 (contract 2.3)
    auto pairs = parse_metadata_filter("a=b%2520c&d=%25C3%25A9%2526");
    ASSERT_TRUE(pairs);
    EXPECT_EQ(pairs->at("a"), "b c");
    EXPECT_EQ(pairs->at("d"), "\xc3\xa9&");
    EXPECT_EQ(parse_metadata_filter("a=b")->at("a"), "b");
    EXPECT_FALSE(parse_metadata_filter("a"));
    EXPECT_FALSE(parse_metadata_filter("a=b=c"));
    EXPECT_TRUE(parse_metadata_filter("")->empty());
}

}  // namespace
}  // namespace gb
