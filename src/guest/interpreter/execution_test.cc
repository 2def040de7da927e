// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/execution.h"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Message message(std::string type, std::string_view content, std::string parent = "me") {
    return {.type = std::move(type),
            .id = "x",
            .date = "2026-01-01T00:00:00Z",
            .parent_id = std::move(parent),
            .content = boost::json::parse(content).as_object(),
            .content_text = std::string(content)};
}
Message idle() {
    return message("status", R"({"execution_state":"idle"})");
}
Message reply(std::string_view content = R"({"status":"ok"})") {
    return message("execute_reply", content);
}

TEST(Execution, NeedsReplyAndIdleInAnyOrder) {
    Execution one("me");
    EXPECT_THAT(one.feed(reply()), IsEmpty());
    EXPECT_FALSE(one.finished());
    EXPECT_THAT(one.feed(idle()), IsEmpty());
    EXPECT_TRUE(one.finished());
    Execution two("me");
    two.feed(message("status", R"({"execution_state":"busy"})"));
    two.feed(idle());
    EXPECT_FALSE(two.finished());
    two.feed(reply());
    EXPECT_TRUE(two.finished());
}

TEST(Execution, MapsMessagesToLines) {
    Execution execution("me");
    EXPECT_THAT(execution.feed(message("execute_input", R"({"code":"","execution_count":4})")),
                ElementsAre("{\"type\":\"number_of_executions\",\"execution_count\":4}\n"));
    EXPECT_THAT(
        execution.feed(message("stream", R"({"name":"stdout","text":"hi\n"})")),
        ElementsAre("{\"type\":\"stdout\",\"text\":\"hi\\n\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n"));
    EXPECT_THAT(execution.feed(message("stream", R"({"name":"stderr","text":"e"})")),
                ElementsAre(HasSubstr(R"("type":"stderr")")));
    EXPECT_THAT(execution.feed(message("execute_result", R"({"data":{"text/plain":"2"},"metadata":{}})")),
                ElementsAre(HasSubstr(R"("is_main_result":true)")));
    EXPECT_THAT(execution.feed(message("display_data", R"({"data":{"image/png":"aGk="}})")),
                ElementsAre(HasSubstr(R"("is_main_result":false)")));
    EXPECT_THAT(execution.feed(message("clear_output", "{}")), IsEmpty());
}

TEST(Execution, IgnoresOtherRequests) {
    Execution execution("me");
    EXPECT_THAT(execution.feed(message("stream", R"({"name":"stdout","text":"x"})", "other")), IsEmpty());
    execution.feed(message("execute_reply", R"({"status":"ok"})", "other"));
    execution.feed(message("status", R"({"execution_state":"idle"})", "other"));
    EXPECT_FALSE(execution.finished());
}

TEST(Execution, OneErrorLineForIopubAndReply) {
    constexpr std::string_view content =
        R"({"status":"error","ename":"ZeroDivisionError","evalue":"division by zero","traceback":["a","b\n","c"]})";
    Execution execution("me");
    EXPECT_THAT(
        execution.feed(message("error", content)),
        ElementsAre("{\"type\":\"error\",\"name\":\"ZeroDivisionError\",\"value\":\"division by zero\","
                    "\"traceback\":\"a\\nb\\nc\"}\n"));
    EXPECT_THAT(execution.feed(reply(content)), IsEmpty());
    Execution reply_only("me");
    EXPECT_THAT(reply_only.feed(reply(content)), ElementsAre(HasSubstr("ZeroDivisionError")));
}

TEST(Execution, AbortedIsAnError) {
    Execution execution("me");
    EXPECT_THAT(execution.feed(reply(R"({"status":"aborted"})")), ElementsAre(HasSubstr("ExecutionAborted")));
}

TEST(Execution, ExitIsNoticed) {
    Execution execution("me");
    execution.feed(reply(R"({"status":"ok","payload":[{"source":"page"}]})"));
    EXPECT_FALSE(execution.asked_to_exit());
    execution.feed(reply(R"({"status":"ok","payload":[{"source":"ask_exit","keepkernel":false}]})"));
    EXPECT_TRUE(execution.asked_to_exit());
}

TEST(Execution, OddContentIsSurvived) {
    Execution execution("me");
    for (const char* type : {"stream", "execute_result", "display_data", "error", "execute_input", "status",
                             "execute_reply", "nonsense"}) {
        for (const char* content :
             {"{}", R"({"data":1,"text":[],"name":{},"traceback":"x","execution_count":"1"})"})
            execution.feed(message(type, content));
    }
}

}  // namespace
}  // namespace gb::interpreter
