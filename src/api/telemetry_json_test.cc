// SPDX-License-Identifier: Apache-2.0
#include "api/telemetry_json.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::api {
namespace {

namespace json = boost::json;

const LogEntry kEntry{.time_ms = 1'700'000'000'123,
                      .sandbox_id = "i1",
                      .team_id = "t1",
                      .level = "warn",
                      .message = "process not started: x",
                      .fields = {{"logger", "process"}, {"level", "forged"}, {"error", "a \"b\"\n"}}};

TEST(TelemetryJson, ALineIsADocumentWithLevelLoggerAndMessage) {
    const json::object line = json::parse(log_line(kEntry)).as_object();
    EXPECT_EQ(line.at("level"), "warn");
    EXPECT_EQ(line.at("logger"), "process");
    EXPECT_EQ(line.at("message"), "process not started: x");
    EXPECT_EQ(line.at("error"), "a \"b\"\n");
    EXPECT_EQ(line.at("timestamp"), "2023-11-14T22:13:20.123Z");
    LogEntry bare = kEntry;
    bare.fields.clear();
    EXPECT_EQ(json::parse(log_line(bare)).at("logger"), "sandbox");
}

TEST(TelemetryJson, EntriesAndMetricsHaveTheFieldsOfTheContract) {
    const json::object entry = log_entry_json(kEntry);
    EXPECT_EQ(entry.at("timestamp"), "2023-11-14T22:13:20.123Z");
    EXPECT_EQ(entry.at("level"), "warn");
    EXPECT_EQ(entry.at("fields").at("logger"), "process");
    const json::object metric = metric_json({.sandbox_id = "i1",
                                             .team_id = "t1",
                                             .time_ms = 1'700'000'000'999,
                                             .cpu_count = 2,
                                             .cpu_used_pct = 12.504,
                                             .mem_used = 1,
                                             .mem_total = 2,
                                             .mem_cache = 3,
                                             .disk_used = 4,
                                             .disk_total = 5});
    EXPECT_EQ(
        json::serialize(metric),
        R"({"timestamp":"2023-11-14T22:13:20.999Z","timestampUnix":1700000000,"cpuCount":2,"cpuUsedPct":1.25E1,)"
        R"("memUsed":1,"memTotal":2,"memCache":3,"diskUsed":4,"diskTotal":5})");
}

}  // namespace
}  // namespace gb::api
