// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/output_line.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

namespace json = boost::json;

json::object decoded(const std::string& line) {
    EXPECT_EQ(line.back(), '\n');
    EXPECT_EQ(line.find('\n'), line.size() - 1) << "one object, one line";
    return json::parse(line).as_object();
}

// Contract 4.3.
TEST(OutputLine, EveryTypeHasItsFields) {
    EXPECT_EQ(decoded(number_of_executions_line(3)),
              json::parse(R"({"type":"number_of_executions","execution_count":3})"));
    EXPECT_EQ(decoded(stream_line(Stream::out, "a\n\"b\"", "t")),
              json::parse(R"({"type":"stdout","text":"a\n\"b\"","timestamp":"t"})"));
    EXPECT_EQ(decoded(stream_line(Stream::err, "", "t")),
              json::parse(R"({"type":"stderr","text":"","timestamp":"t"})"));
    EXPECT_EQ(decoded(error_line("E", "v", "tb")),
              json::parse(R"({"type":"error","name":"E","value":"v","traceback":"tb"})"));
    EXPECT_EQ(decoded(keepalive_line()), json::parse(R"({"type":"keepalive"})"));
    EXPECT_EQ(decoded(end_of_execution_line()), json::parse(R"({"type":"end_of_execution"})"));
}

TEST(OutputLine, MimeTypesBecomeFields) {
    constexpr std::string_view bundle =
        R"({"text/plain":"'x'","text/html":"<b>","text/markdown":"m","image/svg+xml":"s",
        "image/png":"p","image/jpeg":"j","application/pdf":"d","text/latex":"l","application/json":[1],
        "application/javascript":"js","e2b/data":{"a":[1]},"e2b/chart":{"type":"line"},"x/y":7})";
    auto line = decoded(result_line(ResultKind::main_result, bundle));
    EXPECT_EQ(line,
              json::parse(R"({"type":"result","text":"x","html":"<b>","markdown":"m","svg":"s","png":"p",
        "jpeg":"j","pdf":"d","latex":"l","json":[1],"javascript":"js","data":{"a":[1]},"chart":{"type":"line"},
        "extra":{"x/y":7},"is_main_result":true})"));
}

TEST(OutputLine, AbsentTypesAreAbsent) {
    EXPECT_EQ(decoded(result_line(ResultKind::displayed, R"({"text/latex":"l","text/html":null})")),
              json::parse(R"({"type":"result","latex":"l","extra":{},"is_main_result":false})"));
}

TEST(OutputLine, NumbersKeepTheirDigits) {
    EXPECT_EQ(result_line(ResultKind::displayed,
                          "{\"application/json\":\n[0.30000000000000004,123456789012345678901]}"),
              "{\"type\":\"result\",\"json\":[0.30000000000000004,123456789012345678901],\"extra\":{},"
              "\"is_main_result\":false}\n");
}

TEST(OutputLine, OnePairOfQuotesIsTakenOff) {
    EXPECT_EQ(without_quotes("'a'"), "a");
    EXPECT_EQ(without_quotes("\"it's\""), "it's");
    EXPECT_EQ(without_quotes("''a''"), "'a'");
    EXPECT_EQ(without_quotes("''"), "");
    EXPECT_EQ(without_quotes("'"), "'");
    EXPECT_EQ(without_quotes(""), "");
    EXPECT_EQ(without_quotes("'a\""), "'a\"");
    EXPECT_EQ(without_quotes("42"), "42");
}

TEST(OutputLine, UndecodableBytesAreReplaced) {
    EXPECT_EQ(decoded(stream_line(Stream::out, "a\x80z", "t"))["text"], "a\xEF\xBF\xBDz");
    EXPECT_EQ(decoded(result_line(ResultKind::displayed, "{\"x/y\":\"a\xFFz\"}"))["extra"].as_object()["x/y"],
              "a\xEF\xBF\xBDz");
}

}  // namespace
}  // namespace gb::interpreter
