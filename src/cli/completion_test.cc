// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <gmock/gmock.h>

#include "base/subprocess.h"
#include "cli/described_testing.h"

namespace gb::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What bash would offer at the end of `line`.
std::vector<std::string> offered(const std::string& line) {
    const std::string script = bash_completion(described_example()) +
                               "COMP_WORDS=(" + line + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tool\n"
                               "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    auto output = run_checked({"bash", "-c", script});
    EXPECT_TRUE(output) << (output ? "" : output.error().message);
    std::vector<std::string> out;
    const std::string printed = output ? output->out : "";
    for (std::string_view rest = printed; !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(one.size() + 1);
        if (!one.empty()) out.emplace_back(one);
    }
    return out;
}

TEST(BashCompletion, OffersWhatStandsThere) {
    EXPECT_THAT(offered("tool ''"), ElementsAre("serve", "box", "-h", "--help", "--version"));
    EXPECT_THAT(offered("tool b"), ElementsAre("box"));
    EXPECT_THAT(offered("tool box k"), ElementsAre("kill"));
    EXPECT_THAT(offered("tool box kill --j"), ElementsAre("--json"));
    EXPECT_THAT(offered("tool serve --p"), ElementsAre("--port"));
    EXPECT_THAT(offered("tool serve box --j"), IsEmpty()) << "box is no command of serve";
}

TEST(BashCompletion, OffersTheWordsThatAnOptionTakes) {
    EXPECT_THAT(offered("tool serve --level ''"), ElementsAre("debug", "info"));
    EXPECT_THAT(offered("tool serve --on-stop k"), ElementsAre("keep"));
    EXPECT_THAT(offered("tool serve -p ''"), IsEmpty()) << "the shell offers files";
}

TEST(Completion, OtherShellsGetTheSame) {
    const std::string zsh = zsh_completion(described_example());
    EXPECT_THAT(zsh, HasSubstr("#compdef tool\n"));
    EXPECT_THAT(zsh, HasSubstr("'serve:Run -- it'\\''s \\here'\n"));
    EXPECT_THAT(zsh, HasSubstr("'tool serve --level') compadd debug info; return ;;\n"));
    const std::string fish = fish_completion(described_example());
    EXPECT_THAT(fish, HasSubstr("-n \"__tool_at 'tool box'\" -a kill -d 'End some'\n"));
    EXPECT_THAT(fish, HasSubstr("-d 'Run -- it\\'s \\\\here'\n"));
    EXPECT_THAT(fish, HasSubstr("-n \"__tool_at 'tool serve'\" -l level -x -a 'debug info' -d 'How much'\n"));
    for (const std::string& text : {zsh, fish}) EXPECT_THAT(text, Not(HasSubstr("internal")));
}

}  // namespace
}  // namespace gb::cli
