// SPDX-License-Identifier: Apache-2.0
#include "control/disk_use.h"

#include <boost/asio/detached.hpp>

#include "base/assert_ok.h"
#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

SandboxRecord row(std::string id, std::string team, SandboxState state) {
    SandboxRecord out;
    out.id = std::move(id);
    out.team_id = std::move(team);
    out.state = state;
    return out;
}

TEST(DiskByTeam, SumsWhatRunsAndWhatIsPaused) {
    const std::vector<Team> teams{{"t1", "One", "one", "p"}, {"t2", "Two", "two", "p"}};
    const std::vector<SandboxRecord> rows{
        row("a", "t1", SandboxState::running), row("b", "t1", SandboxState::paused),
        row("c", "t1", SandboxState::paused), row("d", "gone", SandboxState::paused)};
    const std::vector<DiskUse> uses{{.id = "a", .bytes = 10},
                                    {.id = "b", .bytes = 100},
                                    {.id = "d", .bytes = 5000},
                                    {.id = "stranger", .bytes = 7},
                                    {.id = "b", .kind = DiskKind::build, .bytes = 9}};
    const TemplateRows templates{.templates = {{"t", "t2", "name", 0}, {"u", "gone", "", 0}},
                                 .builds = {{"b", "t", "a"}, {"c", "t", "a"}, {"d", "u", "a"}}};
    const auto out = disk_by_team(teams, rows, templates, uses);
    ASSERT_EQ(out.size(), 2U);
    EXPECT_EQ(out[0].snapshots, 0U);
    EXPECT_EQ(out[1].snapshots, 2U);
    EXPECT_EQ(out[1].snapshot_bytes, 9U);
    EXPECT_EQ(out[1].bytes(), 9U);
    EXPECT_EQ(out[0].running, 1U);
    EXPECT_EQ(out[0].paused, 2U);
    EXPECT_EQ(out[0].running_bytes, 10U);
    EXPECT_EQ(out[0].paused_bytes, 100U);
    ASSERT_EQ(out[0].largest.size(), 3U);
    EXPECT_EQ(out[0].largest[0].id, "b");
    EXPECT_FALSE(out[0].largest[0].running);
    EXPECT_EQ(out[0].largest[1].id, "a");
    EXPECT_EQ(out[0].largest[2].bytes, 0U);  // it has ended, or is not on the disk yet
    EXPECT_EQ(out[1].team.slug, "two");
    EXPECT_EQ(out[1].running + out[1].paused + out[1].largest.size(), 0U);
}

TEST(DiskByTeam, NamesTheLargestOnlyAndCountsAll) {
    std::vector<SandboxRecord> rows;
    std::vector<DiskUse> uses;
    for (std::uint64_t i = 0; i < 50; ++i) {
        rows.push_back(row("s" + std::to_string(i), "t1", SandboxState::paused));
        uses.push_back({.id = rows.back().id, .bytes = i});
    }
    const auto out = disk_by_team(std::vector<Team>{{"t1", "One", "one", "p"}}, rows, {}, uses);
    EXPECT_EQ(out[0].paused, 50U);
    EXPECT_EQ(out[0].paused_bytes, 49U * 50U / 2);
    ASSERT_EQ(out[0].largest.size(), kLargestSandboxes);
    EXPECT_EQ(out[0].largest.front().bytes, 49U);
    EXPECT_EQ(out[0].largest.back().bytes, 30U);
}

class DiskUsageTest : public SandboxesTest {};

TEST_F(DiskUsageTest, LooksOnceForAllWhoAskAtOnceAndKeepsIt) {
    DiskUsage disk(io_.get_executor(), pool_, *store_, node_);
    run([&]() -> awaitable<void> {
        auto made = co_await sandboxes_->create(team_, request());
        EXPECT_TRUE(made);
        node_.disk[made->record.id] = 4096;
        int answered = 0;
        for (int i = 0; i < 8; ++i)
            asio::co_spawn(
                io_,
                [&]() -> awaitable<void> {
                    auto rows = co_await disk.read(std::chrono::minutes(1));
                    EXPECT_TRUE(rows);
                    if (rows) EXPECT_EQ((**rows)[0].running_bytes, 4096U);
                    ++answered;
                },
                asio::detached);
        while (answered < 8) co_await sleep(1);
        EXPECT_EQ(node_.disk_walks, 1);
        node_.disk[made->record.id] = 8192;
        EXPECT_EQ((**co_await disk.read(std::chrono::minutes(1)))[0].running_bytes, 4096U);
        co_await sleep(2);
        EXPECT_EQ((**co_await disk.read(std::chrono::milliseconds(0)))[0].running_bytes, 8192U);
        EXPECT_EQ(node_.disk_walks, 2);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, made->record.id, PauseMode::with_memory));
        co_await sleep(2);
        auto paused = co_await disk.read(std::chrono::milliseconds(0));
        EXPECT_EQ((**paused)[0].paused_bytes, 8192U);
        EXPECT_EQ((**paused)[0].running, 0U);
    });
}

}  // namespace
}  // namespace gb
