// SPDX-License-Identifier: Apache-2.0
#include "base/subprocess.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace gb {
namespace {

TEST(Subprocess, CapturesBothStreamsAndTheCode) {
    auto result = run({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->out, "out\n");
    EXPECT_EQ(result->err, "err\n");
    EXPECT_EQ(result->exit_code, 3);
}

TEST(Subprocess, PassesLargeInputThrough) {
    RunOptions options;
    options.stdin_data = std::string(3 << 20, 'x');
    auto result = run({"cat"}, options);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->out.size(), options.stdin_data.size());
}

TEST(Subprocess, KillsTheWholeGroupAtTheDeadline) {
    RunOptions options;
    options.timeout = std::chrono::milliseconds(200);
    auto result = run({"/bin/sh", "-c", "sleep 60 & sleep 60"}, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::deadline_exceeded);
}

TEST(Subprocess, OneThatWorksIsWaitedForUpToTheCeiling) {
    RunOptions options;
    options.timeout = {std::chrono::seconds(4), std::chrono::seconds(7)};
    auto busy = run({"/bin/sh", "-c", "while :; do :; done"}, options);
    ASSERT_FALSE(busy);
    EXPECT_NE(busy.error().message.find("something moved all the time"), std::string::npos) << busy.error().message;
    options.timeout = {std::chrono::milliseconds(500), std::chrono::hours(1)};
    auto idle = run({"/bin/sh", "-c", "sleep 3600"}, options);
    ASSERT_FALSE(idle);
    EXPECT_NE(idle.error().message.find("nothing moved for 0.5 s"), std::string::npos) << idle.error().message;
}

TEST(Subprocess, IsGivenUpWithAllThatItStarted) {
    std::stop_source source;
    RunOptions options;
    options.stop = source.get_token();
    pid_t child = 0;
    options.on_stderr_line = [&](std::string_view line) {
        child = static_cast<pid_t>(std::stol(std::string(line)));
        source.request_stop();
    };
    auto result = run({"/bin/sh", "-c", "setsid sh -c 'echo $$ >&2; exec sleep 3600' & sleep 3600"}, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::canceled);
    ASSERT_GT(child, 0);
    // Nobody waits for it but process 1, which may take its time.
    auto state = [&] { return read_file(fmt::format("/proc/{}/stat", child)).value_or(") X"); };
    for (std::string stat = state(); stat[stat.rfind(')') + 2] != 'Z' && stat[stat.rfind(')') + 2] != 'X'; stat = state())
        ::usleep(10'000);
}

TEST(Subprocess, ReportsAMissingProgram) {
    auto result = run({"/no/such/program"});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::not_found);
}

TEST(Subprocess, CheckedCarriesTheLastWordsOfTheProgram) {
    auto result = run_checked({"/bin/sh", "-c", "echo because >&2; exit 1"});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("because"), std::string::npos);
}

TEST(Subprocess, LinesOfStandardErrorArriveOneByOne) {
    std::vector<std::string> lines;
    RunOptions options;
    options.on_stderr_line = [&](std::string_view line) { lines.emplace_back(line); };
    ASSERT_TRUE(run({"/bin/sh", "-c", "printf 'a\\nb\\rc\\n' >&2"}, options));
    EXPECT_EQ(lines, (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace gb
