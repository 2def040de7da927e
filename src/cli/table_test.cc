// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <array>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::cli {
namespace {

namespace json = boost::json;
constexpr std::array kColumns{Column{"NAME", "name"}, Column{"SIZE", "size", Column::Align::right},
                              Column{"END", "mask.end"}};

TEST(Table, ColumnsAreAsWideAsTheyNeed) {
    EXPECT_EQ(format_table(kColumns, json::parse(R"([{"name":"é","size":5,"mask":{"end":"x"}},
                                                     {"name":"longer","size":12345,"mask":null}])")),
              "NAME     SIZE  END\n"
              "é           5  x\n"
              "longer  12345  -\n");
    EXPECT_EQ(format_table(kColumns, json::array()), "NAME  SIZE  END\n");
    EXPECT_EQ(format_table(kColumns, nullptr), "NAME  SIZE  END\n");
}

TEST(Table, FieldsAreText) {
    const json::value object = json::parse(R"({"list":["a","b"],"none":[],"half":0.5,"whole":3.0,"yes":true,
                                               "evil":"\u001b[2J","deep":{"er":1,"est":2},"empty":{}})");
    for (auto [field, text] : std::initializer_list<std::pair<const char*, const char*>>{{"list", "a, b"},
                                                                                         {"none", "-"},
                                                                                         {"half", "0.5"},
                                                                                         {"whole", "3"},
                                                                                         {"yes", "true"},
                                                                                         {"evil", "?[2J"},
                                                                                         {"deep.er", "1"},
                                                                                         {"deep.no", "-"},
                                                                                         {"deep", "er 1, est 2"},
                                                                                         {"empty", "-"},
                                                                                         {"missing", "-"},
                                                                                         {"half.x", "-"}})
        EXPECT_EQ(field_text(object, field), text) << field;
}

}  // namespace
}  // namespace gb::cli
