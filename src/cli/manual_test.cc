// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <gmock/gmock.h>

#include "cli/described_testing.h"

namespace gb::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Manual, ThereIsAPageForTheProgramAndForEachCommand) {
    const auto pages = manual_pages(described_example(), "1.2.3");
    ASSERT_EQ(pages.size(), 3U);
    EXPECT_EQ(pages[0].file, "tool.1");
    EXPECT_EQ(pages[1].file, "tool-serve.1");
    EXPECT_EQ(pages[2].file, "tool-box.1");
    EXPECT_THAT(pages[0].text, HasSubstr("\n\\fBbox\\fR\nBoxes\n"));
    EXPECT_THAT(pages[0].text, HasSubstr(".BR tool\\-serve (1),\n.BR tool\\-box (1)\n"));
    EXPECT_THAT(pages[0].text, HasSubstr("\"glovebox 1.2.3\""));
    EXPECT_THAT(pages[0].text, Not(HasSubstr("internal")));
}

TEST(Manual, TextIsNoRequest) {
    const auto pages = manual_pages(described_example(), "1");
    EXPECT_THAT(pages[1].text, HasSubstr("tool\\-serve \\- Run \\-\\- it's \\ehere\n"));
    CommandText odd{.path = "tool", .help = ".so /etc/passwd\n'x", .options = {}, .arguments = {}, .commands = {}};
    EXPECT_THAT(manual_pages(odd, "1")[0].text, HasSubstr("\\&.so /etc/passwd\n\\&'x\n"));
}

TEST(Manual, APageHasTheCommandsBelow) {
    const auto pages = manual_pages(described_example(), "1");
    EXPECT_THAT(pages[1].text, HasSubstr(".TP\n\\fB\\-p\\fR, \\fB\\-\\-port\\fR \\fIINT\\fR\nA port [3000]\n"));
    EXPECT_THAT(pages[1].text, HasSubstr("\\fB\\-\\-level\\fR debug|info\n"));
    EXPECT_THAT(pages[1].text, Not(HasSubstr("hidden")));
    EXPECT_THAT(pages[2].text, HasSubstr("\\fBtool box kill\\fR [\\fIOPTIONS\\fR] \\fInames\\fR...\n"));
    EXPECT_THAT(pages[2].text, HasSubstr(".SH box kill\nEnd some\n.TP\n\\fInames\\fR\nWhich\n"));
}

}  // namespace
}  // namespace gb::cli
