// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/utf8.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

#define FFFD "\xEF\xBF\xBD"

TEST(ScrubUtf8, ValidTextStays) {
    for (const char* text : {"", "plain", "ü€😀", "\x7F", "\xF4\x8F\xBF\xBF"})
        EXPECT_EQ(scrub_utf8(text), text);
    EXPECT_EQ(scrub_utf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(ScrubUtf8, IllFormedBytesAreReplaced) {
    EXPECT_EQ(scrub_utf8("\x80"), FFFD);
    EXPECT_EQ(scrub_utf8("a\xC3"), "a" FFFD);
    EXPECT_EQ(scrub_utf8("\xC0\xAF"), FFFD FFFD);                    // overlong
    EXPECT_EQ(scrub_utf8("\xED\xA0\x80"), FFFD FFFD FFFD);           // a surrogate
    EXPECT_EQ(scrub_utf8("\xF4\x90\x80\x80"), FFFD FFFD FFFD FFFD);  // beyond U+10FFFF
    EXPECT_EQ(scrub_utf8("ü\xE2\x82€"), "ü" FFFD FFFD "€");
}

TEST(UnfinishedUtf8, OnlyTheBeginningOfACharacterWaits) {
    const std::string euro = "\xE2\x82\xAC";
    EXPECT_EQ(unfinished_utf8(""), 0u);
    EXPECT_EQ(unfinished_utf8("abc"), 0u);
    EXPECT_EQ(unfinished_utf8("a" + euro), 0u);
    EXPECT_EQ(unfinished_utf8("a" + euro.substr(0, 1)), 1u);
    EXPECT_EQ(unfinished_utf8("a" + euro.substr(0, 2)), 2u);
    EXPECT_EQ(unfinished_utf8("\xF0\x9F\x98"), 3u);
    EXPECT_EQ(unfinished_utf8("\x80\x80\x80\x80"), 0u);  // trails of nothing
    EXPECT_EQ(unfinished_utf8("\xC3"), 1u);
}

}  // namespace
}  // namespace gb::interpreter
