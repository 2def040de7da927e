// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <gmock/gmock.h>

#include "cli/described_testing.h"

namespace gb::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CommandTree, HasWhatHelpShowsAndNothingElse) {
    const CommandText tree = described_example();
    std::vector<std::string> paths;
    for (const CommandText* command : all_commands(tree)) paths.push_back(command->path);
    EXPECT_THAT(paths, ElementsAre("tool", "tool serve", "tool box", "tool box kill"));
    std::vector<std::string> options;
    for (const OptionText& option : tree.commands[0].options) options.push_back(option.names.back());
    EXPECT_THAT(options, ElementsAre("--help", "--port", "--level", "--on-stop"));
}

TEST(CommandTree, OptionsSayWhatTheyTake) {
    const CommandText tree = described_example();
    const CommandText& serve = tree.commands[0];
    EXPECT_THAT(serve.options[1].names, ElementsAre("-p", "--port"));
    EXPECT_EQ(serve.options[1].value, "INT");
    EXPECT_EQ(serve.options[1].preset, "3000");
    EXPECT_THAT(serve.options[2].choices, ElementsAre("debug", "info"));
    EXPECT_THAT(serve.options[3].choices, ElementsAre("end", "keep"));
    const CommandText& kill = tree.commands[1].commands[0];
    EXPECT_EQ(kill.name(), "kill");
    ASSERT_EQ(kill.arguments.size(), 1U);
    EXPECT_TRUE(kill.arguments[0].required);
    EXPECT_TRUE(kill.arguments[0].repeats);
    EXPECT_THAT(kill.options[1].value, IsEmpty()) << "a flag";
}

}  // namespace
}  // namespace gb::cli
