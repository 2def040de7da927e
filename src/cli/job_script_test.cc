// SPDX-License-Identifier: Apache-2.0
#include "cli/job_script.h"

#include <csignal>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/assert_ok.h"
#include "base/eventually.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

TEST(JobEnd, IsExactlyACodeAndACount) {
    auto end = parse_job_end("3 1234567890123\n");
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 3);
    EXPECT_EQ(end->output_bytes, 1'234'567'890'123U);
    for (const char* text : {"", "3", "3 ", "3 5", "3 5\n\n", " 3 5\n", "3  5\n", "-1 5\n", "256 5\n",
                             "3 -5\n", "3 5 6\n", "x 5\n", "3 99999999999999999999999\n"})
        EXPECT_FALSE(parse_job_end(text)) << text;
}

TEST(AgentEvent, TakesOutputAndEnd) {
    auto data = parse_agent_event(R"({"event":{"data":{"stdout":"aGkK"}}})");
    ASSERT_OK(data);
    EXPECT_EQ(data->out, "hi\n");
    EXPECT_FALSE(data->exit_code);
    EXPECT_EQ(parse_agent_event(R"({"event":{"data":{"stderr":"aGkK"}}})")->err, "hi\n");
    EXPECT_EQ(parse_agent_event(R"({"event":{"end":{"exited":true,"status":"exit status 0"}}})")->exit_code,
              0);
    EXPECT_EQ(parse_agent_event(R"({"event":{"end":{"exitCode":-1}}})")->exit_code, -1);
    EXPECT_FALSE(parse_agent_event(R"({"event":{"keepalive":{}}})")->exit_code);
    for (const char* text : {"", "[]", "{}", R"({"event":[]})", R"({"event":{"data":{"stdout":"*"}}})",
                             R"({"event":{"data":{"stdout":3}}})", R"({"event":{"end":{"exitCode":"0"}}})",
                             R"({"event":{"end":{"exitCode":4294967296}}})"})
        EXPECT_FALSE(parse_agent_event(text)) << text;
}

TEST(Upload, IsCutAtTheLastColon) {
    EXPECT_EQ(parse_upload("a:b")->file, "a");
    EXPECT_EQ(parse_upload("c:/x/a.py:/data/a.py")->file, "c:/x/a.py");
    EXPECT_EQ(parse_upload("c:/x/a.py:/data/a.py")->path, "/data/a.py");
    for (const char* text : {"", "a", ":b", "a:", ":"}) EXPECT_FALSE(parse_upload(text)) << text;
}

// The scripts themselves, with a home folder of their own.
class JobScript : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_OK(make_dirs(home_ / "work")); }
    void TearDown() override { ASSERT_OK(remove_tree(home_)); }

    // What the agent would do with a message.
    RunOutput call(const std::string& message) {
        const json::value parsed = json::parse(message);
        const json::object& process = parsed.at("process").as_object();
        std::vector<std::string> argv{std::string(process.at("cmd").as_string())};
        for (const json::value& argument : process.at("args").as_array())
            argv.emplace_back(argument.as_string());
        auto done = run(argv, {.extra_env = {"HOME=" + home_.string()}, .cwd = home_ / "work"});
        EXPECT_TRUE(done) << done.error().message;
        return done.value_or(RunOutput{.exit_code = -1});
    }
    RunOutput start(const std::vector<std::string>& command) { return call(start_job_message(command)); }
    RunOutput follow(std::uint64_t offset) { return call(follow_job_message(offset, "t")); }
    const fs::path home_ = fs::temp_directory_path() / ("gb-job-" + random_id(10));
};

TEST_F(JobScript, IsFollowedFromAnyPlaceToItsEnd) {
    EXPECT_EQ(
        start({"/bin/sh", "-c", "pwd; echo \"$0 $1\"; sleep 0.5; echo oops >&2; exit 3", "it's", "a  b"})
            .exit_code,
        0);
    const std::string wanted = (home_ / "work").string() + "\nit's a  b\noops\n";
    const RunOutput whole = follow(0);
    EXPECT_EQ(whole.exit_code, 0);
    EXPECT_EQ(whole.out, wanted);
    const auto end = parse_job_end(whole.err);
    ASSERT_TRUE(end) << whole.err;
    EXPECT_EQ(end->exit_code, 3);
    EXPECT_EQ(end->output_bytes, wanted.size());
    for (std::size_t at : {std::size_t{1}, wanted.size() - 1, wanted.size()})
        EXPECT_EQ(follow(at).out, wanted.substr(at));
    EXPECT_EQ(follow(wanted.size()).err, whole.err);
}

TEST_F(JobScript, StartingTwiceStartsOnce) {
    EXPECT_EQ(start({"/bin/sh", "-c", "echo once; sleep 0.3"}).exit_code, 0);
    EXPECT_EQ(start({"/bin/sh", "-c", "echo once; sleep 0.3"}).exit_code, 0);
    EXPECT_EQ(follow(0).out, "once\n");
    EXPECT_EQ(start({"/bin/echo", "again"}).exit_code, 0);
    EXPECT_EQ(follow(0).out, "once\n");
}

TEST_F(JobScript, WhatCannotRunSaysSo) {
    EXPECT_EQ(follow(0).exit_code, kNoJob);
    EXPECT_EQ(start({"/no/such/program"}).exit_code, 0);
    const RunOutput done = follow(0);
    EXPECT_NE(done.out.find("/no/such/program"), std::string::npos);
    EXPECT_EQ(parse_job_end(done.err)->exit_code, 127);
}

TEST_F(JobScript, AJobThatIsKilledHasNoEnd) {
    EXPECT_EQ(start({"/bin/sleep", "60"}).exit_code, 0);
    const auto pid = static_cast<pid_t>(std::stoi(*read_file(home_ / ".glovebox-job" / "pid")));
    // The number is there before the process has a session of its own.
    ASSERT_TRUE(test::eventually([&] { return ::kill(-pid, 0) == 0; }));
    ASSERT_EQ(::kill(-pid, SIGKILL), 0);  // its session: the shell and the command
    const RunOutput done = follow(0);
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_EQ(done.out + done.err, "");
}

}  // namespace
}  // namespace gb::cli
