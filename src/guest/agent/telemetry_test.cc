// SPDX-License-Identifier: Apache-2.0
// GET /telemetry of a running agent: who may ask, and what is told of processes and files.
#include <boost/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "guest/agent/agent_test_support.h"
#include "guest/agent/oom_kills.h"

namespace gb::agent {
namespace {

namespace json = boost::json;

json::object telemetry(const TestAgent& agent, std::uint64_t after = 0) {
    const auto answer = TestClient(agent).send("GET", "/telemetry?after=" + std::to_string(after));
    EXPECT_EQ(answer.head.status, 200) << answer.body;
    return json::parse(answer.body).as_object();
}

// Messages, oldest first.
std::vector<std::string> messages(const json::object& telemetry) {
    std::vector<std::string> out;
    for (const json::value& entry : telemetry.at("entries").as_array())
        out.emplace_back(entry.at("message").as_string());
    return out;
}

TEST(Telemetry, IsForTheControlPlaneAloneAndNeedsNoToken) {
    const TestAgent agent([](AgentOptions& options) {
        options.settings.access_token = "secret";
        options.allow_local_init = false;
        options.control_peer = asio::ip::make_address("10.11.0.1");
    });
    EXPECT_EQ(TestClient(agent).send("GET", "/telemetry").head.status, 403);
    EXPECT_EQ(TestClient(agent).send("GET", "/telemetry", {{"X-Access-Token", "secret"}}).head.status, 403);
    const TestAgent chosen([](AgentOptions& options) {
        options.settings.access_token = "secret";
        options.allow_local_init = false;
        options.control_peer = asio::ip::make_address("127.0.0.1");
    });
    EXPECT_EQ(TestClient(chosen).send("GET", "/telemetry").head.status, 200);
    EXPECT_EQ(TestClient(chosen).send("GET", "/telemetry?after=x").head.status, 400);
    EXPECT_EQ(TestClient(chosen).send("GET", "/telemetry?after=-1").head.status, 400);
    EXPECT_EQ(TestClient(chosen).send("POST", "/telemetry").head.status, 401);
}

TEST(Telemetry, HasMetricsAndCountersOfTheProcessors) {
    const TestAgent agent;
    const json::object answer = telemetry(agent);
    for (const char* key : {"cpu_count", "mem_total", "mem_used", "mem_cache", "disk_used", "disk_total"})
        EXPECT_TRUE(answer.at("metrics").as_object().contains(key)) << key;
    EXPECT_LE(answer.at("cpu_busy_ticks").as_int64(), answer.at("cpu_total_ticks").as_int64());
    EXPECT_EQ(answer.at("next"), 0);
    EXPECT_EQ(answer.at("more"), false);
}

TEST(Telemetry, ProcessesAreNamedWithTheirEndAndWithoutTheirEnvironment) {
    const TestAgent agent;
    const TestFolder folder;
    auto request = shell("echo to-the-client; exit 3");
    (*request.mutable_process()->mutable_envs())["PASSWORD"] = "hunter2";
    request.mutable_process()->set_cwd(folder.path());
    const std::uint32_t pid = start(agent, request).drain().pid;
    start(agent, shell("kill -9 $$")).drain();
    ::process::StartRequest missing;
    missing.mutable_process()->set_cmd("/no/such/program");
    start(agent, missing).drain();
    const json::object answer = telemetry(agent);
    const auto seen = messages(answer);
    EXPECT_EQ(seen, (std::vector<std::string>{
                        "process started: /bin/sh -c echo to-the-client; exit 3",
                        "process ended with exit code 3: /bin/sh -c echo to-the-client; exit 3",
                        "process started: /bin/sh -c kill -9 $$",
                        "process ended by a signal: killed: /bin/sh -c kill -9 $$",
                        "process not started: /no/such/program"}));
    const json::array& entries = answer.at("entries").as_array();
    const json::object& began = entries[0].at("fields").as_object();
    EXPECT_EQ(began.at("logger"), "process");
    EXPECT_EQ(began.at("pid").as_string(), std::to_string(pid));
    EXPECT_EQ(began.at("cwd").as_string(), folder.path());
    EXPECT_EQ(entries[1].at("fields").at("exit_code"), "3");
    EXPECT_EQ(entries[3].at("fields").at("exit_code"), "-1");
    EXPECT_EQ(entries[4].at("level"), "warn");
    const std::string text = json::serialize(answer);
    EXPECT_EQ(text.find("hunter2"), std::string::npos);
    EXPECT_EQ(text.find("PASSWORD"), std::string::npos);
    EXPECT_TRUE(messages(telemetry(agent, 5)).empty());
}

TEST(Telemetry, TerminalsDeadlinesAndFilesAreTold) {
    const TestAgent agent;
    const TestFolder folder;
    auto terminal = shell("exit 0");
    terminal.mutable_pty()->mutable_size()->set_cols(80);
    start(agent, terminal).drain();
    start(agent, shell("sleep 60"), {{"Connect-Timeout-Ms", "200"}}).drain();
    TestClient client(agent);
    const std::string file = folder.path("f");
    EXPECT_EQ(client
                  .send("POST", "/files?path=" + http::percent_encode(file),
                        {{"Content-Type", "application/octet-stream"}}, "12345")
                  .head.status,
              200);
    filesystem::RemoveRequest remove;
    remove.set_path(file);
    (void)client.call<filesystem::RemoveResponse>("/filesystem.Filesystem/Remove", remove);
    const json::object answer = telemetry(agent);
    const auto seen = messages(answer);
    EXPECT_EQ(seen, (std::vector<std::string>{"terminal started: /bin/sh -c exit 0",
                                              "terminal ended with exit code 0: /bin/sh -c exit 0",
                                              "process started: /bin/sh -c sleep 60",
                                              "process killed at its deadline: /bin/sh -c sleep 60",
                                              "uploaded: " + file, "removed: " + file}));
    EXPECT_EQ(answer.at("entries").at(4).at("fields").at("size"), "5");
    EXPECT_EQ(answer.at("entries").at(5).at("fields").at("logger"), "filesystem");
}

// S4
TEST(Telemetry, ANewIdentityForgetsWhatTheSnapshotDid) {
    const TestAgent agent;
    start(agent, shell("true")).drain();
    EXPECT_EQ(messages(telemetry(agent)).size(), 2U);
    const std::int64_t before = now_ms();
    TestClient client(agent);
    ASSERT_EQ(client.send("POST", "/init", {}, R"({"accessToken":"very-secret"})").head.status, 204);
    const json::object answer = telemetry(agent);
    EXPECT_EQ(messages(answer), std::vector<std::string>{"identity taken"});
    EXPECT_EQ(answer.at("next"), 1);
    EXPECT_GE(answer.at("entries").at(0).at("time").as_int64(), before);
    EXPECT_EQ(json::serialize(answer).find("very-secret"), std::string::npos);
}

TEST(OomKills, AreReadFromTheKernelsCounters) {
    EXPECT_EQ(parse_oom_kills("nr_free_pages 5\noom_kill 12\nballoon 1\n"), 12U);
    EXPECT_EQ(parse_oom_kills("oom_kill 7"), 7U);
    EXPECT_FALSE(parse_oom_kills("oom_killer 7\n"));
    EXPECT_FALSE(parse_oom_kills("oom_kill x\n"));
    EXPECT_FALSE(parse_oom_kills("oom_kill 99999999999999999999\n"));
    EXPECT_FALSE(parse_oom_kills(""));
}

}  // namespace
}  // namespace gb::agent
