// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/bash_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::interpreter {
namespace {

using testing::HasSubstr;

TEST(BashQuoted, OneWordWhateverItHolds) {
    EXPECT_EQ(bash_quoted("plain"), "'plain'");
    EXPECT_EQ(bash_quoted("it's; rm -rf $HOME `x`\n"), "'it'\\''s; rm -rf $HOME `x`\n'");
    EXPECT_EQ(bash_quoted(std::string_view("a\0b", 3)), "'a'");
}

TEST(BashCode, CallsAreFunctionsOfTheStartUpFile) {
    EXPECT_EQ(bash_code(set_call_env({{"A", "1 2"}, {"B", ""}})), "__glovebox_lay call 'A=1 2' 'B='");
    EXPECT_EQ(bash_code(set_call_env({})), "__glovebox_lay call");
    EXPECT_EQ(bash_code(enter_generation(Reseed::no, {{"A", "1"}})), "__glovebox_lay sandbox 'A=1'");
    EXPECT_THAT(bash_code(enter_generation(Reseed::yes, {})),
                testing::MatchesRegex("RANDOM=[0-9]+; __glovebox_lay sandbox"));
}

class BashCodecTest : public testing::Test {
  protected:
    std::filesystem::path dir = testing::TempDir() + "bash_codec_" + std::to_string(::getpid());
    void SetUp() override { ASSERT_TRUE(make_dirs(dir)); }
    void TearDown() override { (void)remove_tree(dir); }
    BashCodec codec{dir};

    std::vector<std::string> said(std::string_view line) {
        auto answer = codec.decode(line);
        EXPECT_TRUE(answer) << answer.error().message;
        std::vector<std::string> types;
        for (const Message& message : answer->messages) types.push_back(message.type);
        return types;
    }
};

TEST_F(BashCodecTest, CodeLiesInAFileAndTheLineNamesIt) {
    PipeRequest request{.id = "7", .code = "echo 'a\nb'", .language = "bash", .count = 1, .call = {}};
    auto line = codec.encode(request);
    ASSERT_TRUE(line);
    EXPECT_EQ(*line,
              "__glovebox_start 7 '" + (dir / "cell-7").string() +
                  "'; \\builtin eval \"$__glovebox_code\" </dev/null 4>&-; __glovebox_finish \"$?\"\n");
    EXPECT_EQ(*read_file(dir / "cell-7"), "echo 'a\nb'");
    ASSERT_TRUE(codec.decode("started 7"));
    EXPECT_FALSE(std::filesystem::exists(dir / "cell-7"));
}

TEST_F(BashCodecTest, StatusOfACellIsItsError) {
    for (const char* id : {"1", "2", "3"})
        ASSERT_TRUE(codec.encode({.id = id, .code = "x", .language = "bash", .count = 1, .call = {}}));
    ASSERT_TRUE(codec.encode({.id = "4", .code = "", .language = "", .count = 0, .call = set_call_env({})}));
    EXPECT_EQ(codec.decode("ready")->kind, PipeAnswer::Kind::ready);
    EXPECT_EQ(codec.decode("started 1")->kind, PipeAnswer::Kind::started);
    EXPECT_THAT(said("done 1 0"), testing::ElementsAre("execute_reply", "status"));
    auto failed = codec.decode("done 2 3");
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->messages[0].content.at("ename"), "ExitCode");
    EXPECT_EQ(failed->messages[0].content.at("evalue"), "3");
    EXPECT_EQ(failed->messages[0].parent_id, "2");
    EXPECT_EQ(codec.decode("done 3 130")->messages[0].content.at("ename"), "KeyboardInterrupt");
    EXPECT_THAT(said("done 4 1"),
                testing::ElementsAre("execute_reply", "status"));  // hidden ones say nothing
}

TEST_F(BashCodecTest, OtherLinesAreRefused) {
    ASSERT_TRUE(codec.encode({.id = "1", .code = "x", .language = "bash", .count = 1, .call = {}}));
    for (const char* line : {"", "done", "done 9 0", "done 1 x", "done 1 ", "said 1 0"})
        EXPECT_FALSE(codec.decode(line)) << line;
}

}  // namespace
}  // namespace gb::interpreter
