// SPDX-License-Identifier: Apache-2.0
#include "node/telemetry_message.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

constexpr std::string_view kGood =
    R"({"metrics":{"ts":1,"cpu_count":2,"cpu_used_pct":1.50,"mem_total":1000,"mem_used":400,"mem_cache":100,)"
    R"("mem_total_mib":0,"mem_used_mib":0,"disk_used":7,"disk_total":9},"cpu_busy_ticks":5,"cpu_total_ticks":50,)"
    R"("next":12,"dropped":3,"more":false,"entries":[)"
    R"({"sequence":11,"time":1700000000000,"level":"info","message":"a","fields":{"logger":"process","pid":"5"}},)"
    R"({"sequence":12,"time":1700000000001,"level":"error","message":"b\n\"é","fields":{"logger":"agent"}}]})";

std::string with(std::string_view from, std::string_view to) {
    std::string out(kGood);
    const std::size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return out.replace(at, from.size(), to);
}

TEST(TelemetryMessage, AnAnswerOfOurAgent) {
    const auto telemetry = parse_telemetry(kGood, 10);
    ASSERT_TRUE(telemetry) << telemetry.error().message;
    EXPECT_EQ(telemetry->metrics.mem_used, 400);
    EXPECT_EQ(telemetry->metrics.disk_total, 9);
    EXPECT_EQ(telemetry->metrics.cpu_total_ticks, 50U);
    EXPECT_EQ(telemetry->next, 12U);
    EXPECT_EQ(telemetry->dropped, 3U);
    ASSERT_EQ(telemetry->entries.size(), 2U);
    EXPECT_EQ(telemetry->entries[0].fields.at("pid"), "5");
    EXPECT_EQ(telemetry->entries[1].message, "b\n\"é");
    EXPECT_EQ(telemetry->entries[1].level, "error");
}

TEST(TelemetryMessage, AnythingElseIsRefused) {
    const std::pair<std::string_view, std::string_view> changes[] = {
        {"\"mem_used\":400", "\"mem_used\":\"400\""},
        {"\"mem_used\":400", "\"mem_used\":-1"},
        {"\"mem_used\":400", "\"mem_used\":4.5"},
        {"\"mem_used\":400", "\"mem_used\":99999999999999999999"},
        {"\"mem_used\":400,", ""},
        {"\"cpu_busy_ticks\":5", "\"cpu_busy_ticks\":1e400"},
        {"\"next\":12", "\"next\":13"},
        {"\"more\":false", "\"more\":0"},
        {"\"sequence\":12", "\"sequence\":11"},
        {"\"sequence\":11", "\"sequence\":10"},
        {"\"time\":1700000000000", "\"time\":999999999999999999"},
        {"\"level\":\"info\"", "\"level\":\"fatal\""},
        {"\"message\":\"a\"", "\"message\":null"},
        {"\"message\":\"a\"", "\"message\":\"\\u0000\""},
        {"\"message\":\"a\"", "\"message\":\"\xff\""},
        {"\"message\":\"a\"", "\"message\":\"\\ud800\""},
        {"\"pid\":\"5\"", "\"pid\":5"},
        {"\"pid\":\"5\"", "\"p d\":\"5\""},
        {"\"pid\":\"5\"", "\"pid\":{\"a\":[[[[]]]]}"},
        {"\"logger\":\"process\",", ""},
        {"\"logger\":\"process\"", "\"logger\":\"sandbox\""},
        {"\"entries\":[", "\"entries\":[7,"},
        {"]}", "]"},
        {"]}",
         "]} "
         "x"},
    };
    for (const auto& [from, to] : changes) {
        const auto telemetry = parse_telemetry(with(from, to), 10);
        ASSERT_FALSE(telemetry) << from << " -> " << to;
        EXPECT_EQ(telemetry.error().code, ErrorCode::internal);
    }
    for (std::string_view body : {"", "null", "[]", "{}"}) EXPECT_FALSE(parse_telemetry(body, 0)) << body;
    EXPECT_FALSE(
        parse_telemetry(with("\"message\":\"a\"", "\"message\":\"" + std::string(5000, 'x') + "\""), 10));
    EXPECT_FALSE(parse_telemetry(std::string(kMaxTelemetryBytes + 1, ' '), 0));
    EXPECT_FALSE(parse_telemetry(kGood, 11));  // repeats what was there already
}

TEST(TelemetryMessage, MoreNeedsSomethingNow) {
    std::string text(kGood);
    text.erase(text.find("[{") + 1);
    text += "]}";
    text.replace(text.find("\"next\":12"), 9, "\"next\":10");
    EXPECT_TRUE(parse_telemetry(text, 10));
    text.replace(text.find("\"more\":false"), 12, "\"more\":true");
    EXPECT_FALSE(parse_telemetry(text, 10));
}

}  // namespace
}  // namespace gb
