#include "guest/interpreter/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

// Contract 4.2.
TEST(Language, Normalisation) {
    EXPECT_EQ(normalize_language(" Python\n"), "python");
    EXPECT_EQ(normalize_language("JS"), "javascript");
    EXPECT_EQ(normalize_language("ts"), "typescript");
    EXPECT_EQ(normalize_language("r"), "r");
    EXPECT_EQ(normalize_language("  "), "");
}

TEST(Language, RefusalNamesWhatThereIs) {
    EXPECT_TRUE(require_kernel_for("python"));
    Status refused = require_kernel_for("cobol");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("cobol"));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("python"));
}

}  // namespace
}  // namespace gb::interpreter
