// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/json_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(JsonCodec, RequestsAreLines) {
    JsonCodec codec;
    EXPECT_EQ(
        *codec.encode({.id = "1", .code = "a\n\"b\"", .language = "javascript", .count = 3, .call = {}}),
        R"({"id":"1","type":"execute","code":"a\n\"b\"","count":3,"language":"javascript"})"
        "\n");
    EXPECT_EQ(*codec.encode(
                  {.id = "2", .code = "", .language = "", .count = 0, .call = set_call_env({{"A", "1"}})}),
              R"({"id":"2","type":"set_call_env","argument":{"A":"1"}})"
              "\n");
}

TEST(JsonCodec, AnswersBecomeMessages) {
    JsonCodec codec;
    EXPECT_EQ(codec.decode(R"({"type":"ready"})")->kind, PipeAnswer::Kind::ready);

    auto result =
        codec.decode(R"({"id":"1","type":"execute_result","content":{"data":{"application/json":1.10}}})");
    ASSERT_TRUE(result);
    ASSERT_EQ(result->messages.size(), 1u);
    EXPECT_EQ(result->messages[0].type, "execute_result");
    EXPECT_EQ(result->messages[0].parent_id, "1");
    EXPECT_EQ(result->messages[0].content_text, R"({"data":{"application/json":1.10}})");  // digit for digit

    auto error =
        codec.decode(R"({"id":"1","type":"error","content":{"ename":"E","evalue":"v","traceback":["t"]}})");
    EXPECT_EQ(error->messages[0].content.at("ename"), "E");

    auto reply = codec.decode(R"({"id":"1","type":"reply","content":{"status":"ok"}})");
    ASSERT_EQ(reply->messages.size(), 2u);
    EXPECT_EQ(reply->messages[0].content.at("status"), "ok");
    EXPECT_FALSE(reply->messages[0].content.contains("payload"));
    EXPECT_EQ(reply->messages[1].content.at("execution_state"), "idle");

    auto exit = codec.decode(R"({"id":"1","type":"reply","content":{"status":"error","exit":true}})");
    EXPECT_EQ(exit->messages[0].content.at("status"), "error");
    EXPECT_TRUE(exit->messages[0].content.contains("payload"));
}

TEST(JsonCodec, OtherLinesAreRefused) {
    JsonCodec codec;
    for (const char* line :
         {"", "{", "[]", "{}", R"({"type":"reply","content":{}})", R"({"id":"1","type":"reply"})",
          R"({"id":"1","type":"reply","content":[]})", R"({"id":"1","type":"x","content":{}})"})
        EXPECT_FALSE(codec.decode(line)) << line;
}

}  // namespace
}  // namespace gb::interpreter
