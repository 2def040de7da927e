// SPDX-License-Identifier: Apache-2.0
#include "cli/decision_table.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::cli {
namespace {

namespace json = boost::json;

json::array lines_of(const char* text) {
    return json::parse(text).get_array();
}

TEST(DecisionTable, AnEndGoesToTheBeginningOfItsConnection) {
    const json::array merged = merge_ends(lines_of(R"([
        {"verdict":"allow","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":1},
        {"verdict":"allow","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":2},
        {"verdict":"deny","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":3},
        {"verdict":"end","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":2,"sent":5,"received":7},
        {"verdict":"end","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":3,"sent":1,"received":1},
        {"verdict":"allow","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":2},
        {"verdict":"end","protocol":"tcp","address":"1.1.1.1","port":443,"source_port":2,"sent":9,"received":9}])"));
    ASSERT_EQ(merged.size(), 5U);
    EXPECT_FALSE(merged[0].get_object().contains("sent"));
    EXPECT_EQ(merged[1].at("sent"), 5);
    EXPECT_EQ(merged[1].at("received"), 7);
    EXPECT_EQ(merged[3].at("verdict"), "end") << "a refused connection has no end";
    EXPECT_EQ(merged[4].at("sent"), 9) << "the same ports again are another connection";
}

TEST(DecisionTable, NamesAndAddresses) {
    const std::string table = format_decisions(lines_of(R"([
        {"time":"t","verdict":"deny","protocol":"dns","name":"evil.com","question":"A","rule":"deny 0.0.0.0/0"},
        {"time":"t","verdict":"allow","protocol":"tcp","name":"a.com","address":"1.1.1.1","port":443,"rule":"allow a.com",
         "sent":5,"received":7},
        {"time":"t","verdict":"deny","protocol":"tcp","address":"10.0.0.1","port":22,"rule":"private"}])"));
    EXPECT_EQ(table,
              "TIME  WHAT   PROTO  DESTINATION      PORT  RULE            SENT  RECEIVED\n"
              "t     deny   dns    evil.com            -  deny 0.0.0.0/0     -         -\n"
              "t     allow  tcp    a.com (1.1.1.1)   443  allow a.com        5         7\n"
              "t     deny   tcp    10.0.0.1           22  private            -         -\n");
}

TEST(DecisionTable, LinesThatComeOneByOneStandBelowTheirTitles) {
    const std::string heading = decision_heading();
    const std::string line = format_decision(json::parse(
        R"({"time":"2026-11-30T00:00:00.000Z","verdict":"deny","protocol":"tcp","address":"10.0.0.1","port":22,"rule":"private"})"));
    EXPECT_EQ(heading.find("DESTINATION"), line.find("10.0.0.1"));
    EXPECT_EQ(heading.find("RULE"), line.find("private"));
    EXPECT_EQ(format_decision("no object").find('{'), std::string::npos);
}

}  // namespace
}  // namespace gb::cli
