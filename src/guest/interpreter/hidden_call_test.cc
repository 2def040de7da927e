// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/hidden_call.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(QuotedLiteral, NothingLeavesTheQuotes) {
    EXPECT_EQ(quoted_literal("plain"), "'plain'");
    EXPECT_EQ(quoted_literal("'; import os #"), R"('\'; import os #')");
    EXPECT_EQ(quoted_literal("back\\"), R"('back\\')");
    EXPECT_EQ(quoted_literal("a\nb\r\x7F"), R"('a\x0ab\x0d\x7f')");
    EXPECT_EQ(quoted_literal(std::string_view("\0", 1)), R"('\x00')");
    EXPECT_EQ(quoted_literal("ü"), "'ü'");
}

TEST(HiddenCall, ValuesTravelAsJsonInALiteral) {
    EXPECT_EQ(python_code(set_call_env({{"A", "it's\n"}})),
              R"(__import__('glovebox_kernel').set_call_env('{"A":"it\'s\\n"}'))");
    EXPECT_EQ(python_code(set_call_env({})), R"(__import__('glovebox_kernel').set_call_env('{}'))");
    EXPECT_EQ(python_code(enter_generation(Reseed::yes, {})),
              R"(__import__('glovebox_kernel').enter_generation('{"reseed":true,"env":{}}'))");
    EXPECT_EQ(r_code(set_call_env({{"A", "1"}})), R"(getOption('glovebox')$set_call_env('{"A":"1"}'))");
}

}  // namespace
}  // namespace gb::interpreter
