// SPDX-License-Identifier: Apache-2.0
#include "api/webhook_request.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

constexpr const char* kWhole =
    R"({"name":"n","url":"https://example.com/x?y=1","enabled":true,"signatureSecret":"s",
        "events":["sandbox.lifecycle.killed","sandbox.lifecycle.created","sandbox.lifecycle.killed"]})";

TEST(WebhookRequest, CreateTakesEverything) {
    Webhook webhook;
    ASSERT_TRUE(apply_webhook_request(kWhole, WebhookRequest::create, webhook));
    EXPECT_EQ(webhook.name, "n");
    EXPECT_EQ(webhook.secret, "s");
    EXPECT_EQ(webhook.events, (std::vector<std::string>{"sandbox.lifecycle.created", "sandbox.lifecycle.killed"}));
}

TEST(WebhookRequest, ChangeKeepsWhatIsNotNamed) {
    Webhook webhook;
    ASSERT_TRUE(apply_webhook_request(kWhole, WebhookRequest::create, webhook));
    ASSERT_TRUE(apply_webhook_request(R"({"enabled":false})", WebhookRequest::change, webhook));
    EXPECT_FALSE(webhook.enabled);
    EXPECT_EQ(webhook.url, "https://example.com/x?y=1");
    EXPECT_EQ(webhook.events.size(), 2U);
}

TEST(WebhookRequest, WhatIsWrongIsNamedAndChangesNothing) {
    for (auto [body, field] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"({"url":"ftp://a"})", "url"},
             {R"({"url":"example.com"})", "url"},
             {R"({"url":"http://u:p@a/"})", "url"},
             {R"({"url":"http:///x"})", "url"},
             {R"({"name":""})", "name"},
             {R"({"events":[]})", "events"},
             {R"({"events":["nope"]})", "nope"},
             {R"({"signatureSecret":""})", "signatureSecret"},
             {R"({"enabled":"yes"})", "enabled"}}) {
        Webhook webhook;
        auto status = apply_webhook_request(body, WebhookRequest::change, webhook);
        ASSERT_FALSE(status) << body;
        EXPECT_NE(status.error().message.find(field), std::string::npos) << status.error().message;
    }
    Webhook webhook;
    EXPECT_FALSE(apply_webhook_request(R"({"name":"n"})", WebhookRequest::create, webhook));
}

}  // namespace
}  // namespace gb::api
