// SPDX-License-Identifier: Apache-2.0
#include "node/ready_wait.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

TEST(ReadyWait, ReadsWhatTheInterpreterStarts) {
    auto news = parse_startup(
        R"({"status":"starting","startup":[{"name":"python","state":"ready","seconds":99.1},)"
        R"({"name":"r","state":"starting","seconds":3.0},{"name":"bash","state":"failed","error":"x"},)"
        R"({"name":"java","state":"waits"}]})");
    ASSERT_TRUE(news);
    EXPECT_EQ(news->text, "python ready, r being started, bash failed, java waits");
    EXPECT_DOUBLE_EQ(news->fraction, 0.25);
}

TEST(ReadyWait, OtherAnswersSayNothing) {
    for (const char* text : {"", "\"OK\"", "not ready", "{}", R"({"startup":[]})", R"({"startup":{}})",
                             R"({"startup":[1]})", R"({"startup":[{"state":"ready"}]})"})
        EXPECT_FALSE(parse_startup(text)) << text;
}

}  // namespace
}  // namespace gb
