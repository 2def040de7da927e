// SPDX-License-Identifier: Apache-2.0
#include "control/template_name.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(TemplateName, ReadsItsThreeParts) {
    struct Row {
        const char* text;
        TemplateName parts;
    };
    for (const Row& row :
         {Row{"base", {"", "base", ""}}, Row{"base:v1.2", {"", "base", "v1.2"}},
          Row{"team/base", {"team", "base", ""}}, Row{" Team/Base_2:Default ", {"team", "base_2", "default"}},
          Row{"a-b/c_d:e.f-g", {"a-b", "c_d", "e.f-g"}}}) {
        auto read = parse_template_name(row.text);
        ASSERT_TRUE(read) << row.text;
        EXPECT_EQ(read->space, row.parts.space) << row.text;
        EXPECT_EQ(read->name, row.parts.name) << row.text;
        EXPECT_EQ(read->tag, row.parts.tag) << row.text;
    }
}

TEST(TemplateName, AnythingElseIsRefused) {
    for (const std::string& text :
         {std::string(), std::string(" "), std::string("/"), std::string(":"), std::string("a/"),
          std::string("/a"), std::string("a:"), std::string(":a"), std::string("a/b/c"), std::string("a:b:c"),
          std::string("a b"), std::string("a.b"), std::string("\xc3\xa9"), std::string("a\0b", 3),
          std::string("../a"), std::string(129, 'a')})
        EXPECT_EQ(parse_template_name(text).error().code, ErrorCode::invalid_argument) << text;
    EXPECT_TRUE(parse_template_name(std::string(128, 'a')));
}

TEST(TemplateName, NewNamesAreInTheTeamsOwnNamespace) {
    auto plain = parse_new_template_name("Name", "team");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->space, "team");
    EXPECT_EQ(plain->tag, "default");
    EXPECT_TRUE(parse_new_template_name("team/name:v1", "team"));
    EXPECT_EQ(parse_new_template_name("other/name", "team").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(parse_new_template_name("name:6f1c1f0e-9a7e-4d4c-8f3b-0a1b2c3d4e5f", "team").error().code,
              ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gb
