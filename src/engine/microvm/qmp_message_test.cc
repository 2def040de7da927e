// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/qmp_message.h"

#include <gtest/gtest.h>

namespace gb::engine {
namespace {

TEST(QmpMessage, UnderstandsWhatQemuSays) {
    auto greeting =
        parse_qmp_line(R"({"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": ["oob"]}})");
    ASSERT_TRUE(greeting.has_value());
    EXPECT_TRUE(std::holds_alternative<QmpGreeting>(*greeting));

    auto reply = parse_qmp_line(R"({"return": {"status": "running"}, "id": 7})");
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(std::get<QmpReply>(*reply).id, 7U);
    EXPECT_EQ(std::get<QmpReply>(*reply).result.at("status").as_string(), "running");

    auto error = parse_qmp_line(R"({"id": 8, "error": {"class": "GenericError", "desc": "no such thing"}})");
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(std::get<QmpReply>(*error).error, "no such thing");

    auto event = parse_qmp_line(
        R"({"timestamp": {"seconds": 1}, "event": "MIGRATION", "data": {"status": "completed"}})");
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(std::get<QmpEvent>(*event).name, "MIGRATION");
    EXPECT_EQ(std::get<QmpEvent>(*event).data.at("status").as_string(), "completed");
}

TEST(QmpMessage, WhatIsNotTheProtocolIsAnError) {
    for (const char* line :
         {"", "{", "null", "7", "[]", "{}", "\"QMP\"", R"({"return": {}})", R"({"return": {}, "id": "x"})",
          R"({"return": {}, "id": -1})", R"({"return": {}, "id": 1.5})", R"({"error": {"desc": "x"}})",
          R"({"event": 7})", R"({"event": null, "data": {}})", "{\"event\": \"\xff\xfe\"}",
          R"({"return": {}, "id": 99999999999999999999999})", R"({"return": {}, "id": 1} trailing)"})
        EXPECT_FALSE(parse_qmp_line(line).has_value()) << line;
    std::string deep(100'000, '[');
    EXPECT_FALSE(parse_qmp_line(deep).has_value());
    std::string nested = R"({"return": )";
    for (int i = 0; i < 40; ++i) nested += R"({"a":)";
    nested += "1" + std::string(40, '}') + R"(, "id": 1})";
    EXPECT_FALSE(parse_qmp_line(nested).has_value());
}

TEST(QmpMessage, OddShapesInsideAreBounded) {
    auto reply = parse_qmp_line(R"({"id": 1, "error": ")" + std::string(10'000, 'x') + R"("})");
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(std::get<QmpReply>(*reply).error, "no description");
    reply = parse_qmp_line(R"({"id": 1, "error": {"desc": ")" + std::string(10'000, 'x') + R"("}})");
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(std::get<QmpReply>(*reply).error->size(), 500U);
    auto event = parse_qmp_line(R"({"event": "X", "data": [1, 2]})");
    ASSERT_TRUE(event.has_value());
    EXPECT_TRUE(std::get<QmpEvent>(*event).data.empty());
}

TEST(QmpLines, CutsWhereverTheBytesAreSplit) {
    const std::string text = "{\"a\":1}\r\n\r\n\n{\"b\":2}\n{\"c\"";
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
        QmpLines lines;
        std::vector<std::string> out;
        for (std::size_t at = 0; at < text.size(); at += piece) {
            ASSERT_TRUE(lines.feed(text.substr(at, piece)).has_value());
            while (auto line = lines.next()) out.push_back(*line);
        }
        EXPECT_EQ(out, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"})) << piece;
    }
}

TEST(QmpLines, LineWithoutEndIsRefusedForGood) {
    QmpLines lines;
    Status status;
    for (int i = 0; i < 100 && status; ++i) status = lines.feed(std::string(4096, 'x'));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::too_large);
    EXPECT_FALSE(lines.feed("{}\n").has_value());
    EXPECT_FALSE(lines.next().has_value());
}

TEST(QmpLines, ManyLinesAreNoLongLine) {
    QmpLines lines;
    std::string many;
    while (many.size() < 2 * kQmpMaxLine) many += "{\"event\": \"X\"}\n";
    ASSERT_TRUE(lines.feed(many).has_value());
    int count = 0;
    while (lines.next()) ++count;
    EXPECT_EQ(count, static_cast<int>(many.size() / 15));
}

TEST(QmpRequest, IsOneLine) {
    EXPECT_EQ(qmp_request("cont", {}, 3), "{\"execute\":\"cont\",\"id\":3}\n");
    boost::json::object arguments;
    arguments["uri"] = "fd:a\nb";
    EXPECT_EQ(qmp_request("migrate", arguments, 4),
              "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"fd:a\\nb\"},\"id\":4}\n");
}

}  // namespace
}  // namespace gb::engine
