// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/paths.h"

#include <gtest/gtest.h>

namespace gb::agent {
namespace {

TEST(CleanPath, IsLexical) {
    EXPECT_EQ(clean_path("/a/./b//../c/"), "/a/c");
    EXPECT_EQ(clean_path("/"), "/");
    EXPECT_EQ(clean_path("//"), "/");
    EXPECT_EQ(clean_path("/../../x"), "/x");
    EXPECT_EQ(clean_path("/a/.."), "/");
    EXPECT_EQ(clean_path("/a/...//b"), "/a/.../b");
    EXPECT_EQ(clean_path("/ / "), "/ / ");
}

// F5
TEST(ResolvePath, HomeBaseAndAbsolute) {
    EXPECT_EQ(resolve_path("~", "/home/user", "/app"), "/home/user");
    EXPECT_EQ(resolve_path("~/", "/home/user", "/app"), "/home/user");
    EXPECT_EQ(resolve_path("~/x/../y", "/home/user", "/app"), "/home/user/y");
    EXPECT_EQ(resolve_path("", "/home/user", "/app"), "/app");
    EXPECT_EQ(resolve_path("x", "/home/user", "/app"), "/app/x");
    EXPECT_EQ(resolve_path("./x", "/home/user", "/app"), "/app/x");
    EXPECT_EQ(resolve_path("../../../x", "/home/user", "/app"), "/x");
    EXPECT_EQ(resolve_path(".hidden/f", "/home/user", "/app"), "/app/.hidden/f");
    EXPECT_EQ(resolve_path("/etc/../tmp", "/home/user", "/app"), "/tmp");
    EXPECT_EQ(resolve_path("a~b", "/h", "/app"), "/app/a~b");
    EXPECT_EQ(resolve_path("-rf", "/h", "/app"), "/app/-rf");
}

TEST(ResolvePath, RefusesWhatHasNoMeaning) {
    EXPECT_EQ(resolve_path("~root/x", "/h", "/h").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(resolve_path(std::string_view("a\0b", 3), "/h", "/h").error().code,
              ErrorCode::invalid_argument);
    const std::string_view cut("/a\0b", 4);
    EXPECT_EQ(resolve_path("x", "/h", cut).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(resolve_path("~/x", cut, "/h").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(resolve_path("/x", cut, cut), "/x");
}

TEST(PathParts, OfCleanPaths) {
    EXPECT_EQ(base_name("/a/b"), "b");
    EXPECT_EQ(base_name("/"), "/");
    EXPECT_EQ(parent_path("/a/b"), "/a");
    EXPECT_EQ(parent_path("/a"), "/");
    EXPECT_EQ(parent_path("/"), "/");
    EXPECT_EQ(join_path("/", "x"), "/x");
    EXPECT_EQ(join_path("/a", "x"), "/a/x");
}

TEST(ToUtf8, ReplacesOnlyWhatIsBroken) {
    EXPECT_EQ(to_utf8("a\xC3\xA4\xE4\xB8\xAD\xF0\x9F\x98\x80"), "a\xC3\xA4\xE4\xB8\xAD\xF0\x9F\x98\x80");
    EXPECT_EQ(to_utf8("\x89PNG"), "\xEF\xBF\xBDPNG");
    EXPECT_EQ(to_utf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
    EXPECT_EQ(to_utf8("\xE4\xB8"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut short
    EXPECT_EQ(to_utf8("\xED\xA0\x80").size(), 9U);               // a surrogate
}

}  // namespace
}  // namespace gb::agent
