// SPDX-License-Identifier: Apache-2.0
// Logs as files: read from either end while they grow and rotate, moved, and never without a word about what
// is missing.
#include "net/decision_log.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/assert_ok.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb::net {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class DecisionLogFiles : public testing::Test {
  protected:
    void SetUp() override { ASSERT_OK(make_dirs(dir_)); }
    void TearDown() override { ASSERT_OK(remove_tree(dir_)); }
    void write(const fs::path& path, std::string_view text) {
        std::ofstream out(path, std::ios::app);
        out << text;
    }
    static std::vector<std::string> lines(const fs::path& log, std::size_t limit) {
        auto part = read_lines(log, "", limit);
        EXPECT_TRUE(part) << part.error().message;
        return part ? part->lines : std::vector<std::string>{};
    }
    fs::path dir_ = fs::temp_directory_path() / ("gb-log-" + random_id(10));
    fs::path log_ = dir_ / "egress.log", older_ = dir_ / "egress.log.1";
};

TEST_F(DecisionLogFiles, TheOlderPartComesFirst) {
    EXPECT_THAT(lines(log_, 10), IsEmpty());
    write(older_, "1\n2\n");
    write(log_, "3\n4\n");
    EXPECT_THAT(lines(log_, 10), ElementsAre("1", "2", "3", "4"));
    EXPECT_THAT(lines(log_, 3), ElementsAre("1", "2", "3"));
}

TEST_F(DecisionLogFiles, PartsFollowEachOtherAcrossARotation) {
    write(log_, "1\n2\n3\nhal");
    auto part = read_lines(log_, "", 2);
    ASSERT_OK(part);
    EXPECT_THAT(part->lines, ElementsAre("1", "2"));
    part = read_lines(log_, part->next, 10);
    ASSERT_OK(part);
    EXPECT_THAT(part->lines, ElementsAre("3")) << "a line counts when it is whole";
    const std::string there = part->next;
    write(log_, "f\n");
    fs::rename(log_, older_);
    write(log_, "5\n");
    part = read_lines(log_, there, 10);
    ASSERT_OK(part);
    EXPECT_THAT(part->lines, ElementsAre("half", "5"));
    part = read_lines(log_, part->next, 10);
    ASSERT_OK(part);
    EXPECT_THAT(part->lines, IsEmpty());
    // What it points to is gone: from the first that is kept.
    fs::remove(older_);
    part = read_lines(log_, there, 10);
    ASSERT_OK(part);
    EXPECT_THAT(part->lines, ElementsAre("5"));
    EXPECT_FALSE(read_lines(log_, "x", 10));
    EXPECT_FALSE(read_lines(log_, "1-", 10));
    ASSERT_OK(read_lines(dir_ / "none", "", 10));
}

TEST_F(DecisionLogFiles, LongLogsAreReadInPieces) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += fmt::format("line {}\n", i);
    write(log_, text);
    std::string after;
    int next = 0;
    for (;;) {
        auto part = read_lines(log_, after, 30'000);
        ASSERT_OK(part);
        if (part->lines.empty()) break;
        for (const std::string& line : part->lines) ASSERT_EQ(line, fmt::format("line {}", next++));
        after = part->next;
    }
    EXPECT_EQ(next, 200'000);
}

TEST_F(DecisionLogFiles, MovesWhole) {
    ASSERT_OK(move_log(log_, dir_ / "gone.log"));
    write(older_, "1\n");
    write(log_, "2\n");
    ASSERT_OK(move_log(log_, dir_ / "gone.log"));
    EXPECT_THAT(lines(dir_ / "gone.log", 9), ElementsAre("1", "2"));
    EXPECT_THAT(lines(log_, 9), IsEmpty());
}

}  // namespace
}  // namespace gb::net
