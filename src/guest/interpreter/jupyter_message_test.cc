// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/jupyter_message.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "base/crypto.h"
#include "base/ids.h"

namespace gb::interpreter {
namespace {

std::vector<std::string> signed_frames(std::vector<std::string> parts, std::string_view key) {
    std::string all;
    for (const std::string& part : parts) all += part;
    std::vector<std::string> frames = {"topic", "<IDS|MSG>", to_hex(hmac_sha256(key, all))};
    frames.insert(frames.end(), parts.begin(), parts.end());
    return frames;
}

Result<Message> parse(const std::vector<std::string>& frames, std::string_view key) {
    std::vector<std::string_view> views(frames.begin(), frames.end());
    return parse_message(views, key);
}

TEST(JupyterMessage, WhatIsBuiltCanBeParsed) {
    Request request{.id = "1",
                    .session = "s",
                    .type = "execute_request",
                    .date = "2026-01-01T00:00:00.000Z",
                    .content = execute_content("print('ü')", Visibility::recorded)};
    auto frames = build_message(request, "key");
    ASSERT_EQ(frames.size(), 6u);
    auto header = boost::json::parse(frames[2]).as_object();
    EXPECT_EQ(header["version"], "5.3");
    auto message = parse(frames, "key");
    ASSERT_TRUE(message) << message.error().message;
    EXPECT_EQ(message->id, "1");
    EXPECT_EQ(message->type, "execute_request");
    EXPECT_EQ(message->parent_id, "");
    EXPECT_EQ(message->content["code"], "print('ü')");
    EXPECT_EQ(message->content["store_history"], true);
    EXPECT_EQ(message->content["allow_stdin"], false);
}

TEST(JupyterMessage, SilentRequestsLeaveNoHistory) {
    auto content = execute_content("x", Visibility::silent);
    EXPECT_EQ(content["silent"], true);
    EXPECT_EQ(content["store_history"], false);
}

TEST(JupyterMessage, TopicParentAndBuffersAreUnderstood) {
    auto frames = signed_frames({R"({"msg_id":"2","msg_type":"status","date":"d"})", R"({"msg_id":"1"})",
                                 "{}", R"({"execution_state":"idle"})"},
                                "key");
    frames.push_back("a buffer");
    auto message = parse(frames, "key");
    ASSERT_TRUE(message) << message.error().message;
    EXPECT_EQ(message->parent_id, "1");
    EXPECT_EQ(message->date, "d");
}

TEST(JupyterMessage, WrongSignatureIsRefused) {
    auto frames = signed_frames({R"({"msg_type":"status"})", "{}", "{}", "{}"}, "another key");
    auto message = parse(frames, "key");
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().code, ErrorCode::permission_denied);
}

TEST(JupyterMessage, HalfMessagesAreRefused) {
    auto frames = signed_frames({R"({"msg_type":"status"})", "{}", "{}", "{}"}, "key");
    for (std::size_t size = 0; size < frames.size(); ++size)
        EXPECT_FALSE(parse({frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(size)}, "key"))
            << size;
    EXPECT_FALSE(parse(signed_frames({"[]", "{}", "{}", "{}"}, "key"), "key"));
    EXPECT_FALSE(parse(signed_frames({"{}", "{}", "{}", "{}"}, "key"), "key"));
    EXPECT_FALSE(parse(signed_frames({R"({"msg_type":"status"})", "{}", "{}", "{"}, "key"), "key"));
}

TEST(JupyterMessage, DeepResultsAndUndecodableBytesPass) {
    std::string deep = std::string(200, '[') + std::string(200, ']');
    EXPECT_TRUE(
        parse(signed_frames({R"({"msg_type":"x"})", "{}", "{}", R"({"data":)" + deep + "}"}, "key"), "key"));
    EXPECT_TRUE(
        parse(signed_frames({R"({"msg_type":"x"})", "{}", "{}", "{\"text\":\"\x80\"}"}, "key"), "key"));
}

}  // namespace
}  // namespace gb::interpreter
