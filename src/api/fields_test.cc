// SPDX-License-Identifier: Apache-2.0
#include "api/fields.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::api {
namespace {

TEST(Fields, ReadsEachKindAndToleratesAbsence) {
    auto body = parse_object(R"({"s":"x","b":true,"i":3.0,"l":["a","b"],"m":{"k":"v"},"o":{}})", false);
    ASSERT_TRUE(body);
    Fields f(*body);
    EXPECT_EQ(*f.text("s"), "x");
    EXPECT_EQ(*f.boolean("b"), true);
    EXPECT_EQ(*f.integer("i"), 3);
    EXPECT_EQ(f.texts("l")->size(), 2U);
    EXPECT_EQ(f.text_map("m")->at("k"), "v");
    EXPECT_NE(*f.object("o"), nullptr);
    EXPECT_EQ(*f.text("none"), std::nullopt);
    EXPECT_FALSE(f.required_text("none"));
    EXPECT_EQ(Fields(*body, "net.").integer("s").error().message,
              "validation error: field 'net.s' must be a whole number");
}

TEST(Fields, EmptyBodyOnlyWhereAllowed) {
    EXPECT_TRUE(parse_object("", true));
    EXPECT_FALSE(parse_object(" \n", false));
}

}  // namespace
}  // namespace gb::api
