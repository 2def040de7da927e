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

}  // namespace
}  // namespace gb::interpreter
