#include "guest/interpreter/python_prelude.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(PythonLiteral, NothingLeavesTheQuotes) {
    EXPECT_EQ(python_literal("plain"), "'plain'");
    EXPECT_EQ(python_literal("'; import os #"), R"('\'; import os #')");
    EXPECT_EQ(python_literal("back\\"), R"('back\\')");
    EXPECT_EQ(python_literal("a\nb\r\x7F"), R"('a\x0ab\x0d\x7f')");
    EXPECT_EQ(python_literal(std::string_view("\0", 1)), R"('\x00')");
    EXPECT_EQ(python_literal("ü"), "'ü'");
}

TEST(PythonPrelude, ValuesTravelAsJsonInALiteral) {
    EXPECT_EQ(set_call_env_code({{"A", "it's\n"}}),
              R"(__import__('glovebox_kernel').set_call_env('{"A":"it\'s\\n"}'))");
    EXPECT_EQ(reset_call_env_code(), R"(__import__('glovebox_kernel').set_call_env('{}'))");
    EXPECT_EQ(enter_generation_code(Reseed::yes, {}),
              R"(__import__('glovebox_kernel').enter_generation('{"reseed":true,"env":{}}'))");
    EXPECT_EQ(preload_code({"numpy", "pandas"}),
              R"(__import__('glovebox_kernel').preload('["numpy","pandas"]'))");
}

}  // namespace
}  // namespace gb::interpreter
