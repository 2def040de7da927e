// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/runtimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Runtimes, LanguagesAreThoseWhoseProgramsAreThere) {
    Runtimes none{.python = "", .node = "", .bash = "", .r = "", .java = "", .javac = ""};
    EXPECT_THAT(languages(none), ElementsAre());
    none.java = "/usr/bin/java";  // without a compiler it runs nothing
    EXPECT_THAT(languages(none), ElementsAre());
    none.javac = "/usr/bin/javac";
    none.node = "/usr/bin/node";
    EXPECT_THAT(languages(none), ElementsAre("java", "javascript", "typescript"));
}

TEST(Runtimes, RefusalNamesWhatThereIs) {
    const Runtimes some{.python = "/usr/bin/python3", .node = "", .bash = "/bin/bash"};
    EXPECT_TRUE(require_kernel_for("python", some));
    Status refused = require_kernel_for("cobol", some);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unimplemented);
    EXPECT_THAT(refused.error().message, HasSubstr("'cobol'"));
    EXPECT_THAT(refused.error().message, HasSubstr("Available: bash, python"));
}

}  // namespace
}  // namespace gb::interpreter
