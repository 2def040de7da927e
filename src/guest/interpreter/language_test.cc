// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/language.h"

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

}  // namespace
}  // namespace gb::interpreter
