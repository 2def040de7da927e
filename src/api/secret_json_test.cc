// SPDX-License-Identifier: Apache-2.0
#include "api/secret_json.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::api {
namespace {

TEST(SecretJson, WhatClientsSend) {
    auto made =
        parse_secret(R"({"name":"k","value":"v","metadata":{"a":"b"},"extra":1})", SecretRequest::create);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->name, "k");
    EXPECT_EQ(made->value, "v");
    EXPECT_EQ(made->metadata->at("a"), "b");
    EXPECT_FALSE(parse_secret(R"({"value":"v"})", SecretRequest::update)->metadata) << "it stays";
    EXPECT_TRUE(parse_secret(R"({"value":"v","metadata":{}})", SecretRequest::update)->metadata);
    for (auto body : {"", "[]", R"({"name":"k"})", R"({"value":"q9x"})", R"({"name":"k","value":["q9x"]})",
                      R"({"name":"k","value":""})", R"({"name":"k","value":"q9x","metadata":{"a":1}})",
                      R"({"name":1,"value":"q9x"})", R"({"name":"k","value":"q9x")"}) {
        auto refused = parse_secret(body, SecretRequest::create);
        ASSERT_FALSE(refused) << body;
        EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(refused.error().message.find("q9x"), std::string::npos);
    }
}

TEST(SecretJson, AnswersHaveEverythingButTheValue) {
    const SecretRecord record{
        .id = "sec_1", .team_id = "t1", .name = "k", .version = 3, .metadata = {}, .sealed = "SEALED"};
    EXPECT_EQ(boost::json::serialize(secret_json(record)),
              R"({"secretID":"sec_1","name":"k","currentVersion":3,"metadata":{},)"
              R"("createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"1970-01-01T00:00:00.000Z"})");
}

}  // namespace
}  // namespace gb::api
