// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/request_body.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(RequestBody, ExecuteWithNullsAsClientsSendThem) {
    auto request =
        parse_execute_request(R"({"code":"1+1","context_id":null,"language":null,"env_vars":null})");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->code, "1+1");
    EXPECT_FALSE(request->context_id);
    EXPECT_FALSE(request->language);
    EXPECT_TRUE(request->env_vars.empty());
}

TEST(RequestBody, ExecuteWithEverything) {
    auto request =
        parse_execute_request(R"({"code":"","context_id":"c","language":"r","env_vars":{"A":"b"},"new":1})");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->context_id, "c");
    EXPECT_EQ(request->language, "r");
    EXPECT_EQ(request->env_vars, (EnvMap{{"A", "b"}}));
}

TEST(RequestBody, RefusalsNameTheField) {
    EXPECT_FALSE(parse_execute_request(""));
    EXPECT_FALSE(parse_execute_request("[]"));
    EXPECT_EQ(parse_execute_request("{}").error().message, "Field code is required");
    EXPECT_EQ(parse_execute_request(R"({"code":1})").error().message, "Field code is not a string");
    EXPECT_EQ(parse_execute_request(R"({"code":"","env_vars":{"A":1}})").error().message,
              "Field env_vars.A is not a string");
}

TEST(RequestBody, ContextDefaults) {
    auto request = parse_create_context_request("");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->language, "python");
    EXPECT_EQ(request->cwd, "");
    request = parse_create_context_request(R"({"language":"js","cwd":"/root"})");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->language, "js");
    EXPECT_EQ(request->cwd, "/root");
}

}  // namespace
}  // namespace gb::interpreter
