// SPDX-License-Identifier: Apache-2.0
// Output that is gathered loses nothing, keeps its order, and holds up nobody.
#include <memory>

#include "guest/agent/agent_test_support.h"

namespace gb::agent {
namespace {

std::string lines(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += std::to_string(i) + "\n";
    return out;
}

const std::string kCount = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done";

TEST(Gathering, ManyLinesAreFewMessages) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell(kCount));
    int messages = 0;
    while (stream.read_more()) ++messages;
    EXPECT_EQ(stream.out, lines(3000));
    EXPECT_LT(messages, 1500);
    ASSERT_TRUE(stream.end);
}

// Standard error's line was written last, and standard output's are still being gathered.
TEST(Gathering, TheOrderOfTheOutputsStays) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("r=0; while [ $r -lt 30 ]; do i=0; while [ $i -lt 20 ]; do echo $i; i=$((i+1)); done; "
                                              "echo error >&2; sleep 0.03; r=$((r+1)); done"));
    std::string text;
    std::size_t out = 0, err = 0;
    while (stream.read_more()) {
        text += stream.out.substr(out) + stream.err.substr(err);
        out = stream.out.size();
        err = stream.err.size();
    }
    std::string expected;
    for (int round = 0; round < 30; ++round) expected += lines(20) + "error\n";
    EXPECT_EQ(text, expected);
}

TEST(Gathering, WhatIsLeftGoesOutWithTheEnd) {
    const TestAgent agent;
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(start(agent, shell("for i in 1 2 3 4 5 6 7 8; do echo $i; done; printf last")).drain().out, "1\n2\n3\n4\n5\n6\n7\n8\nlast");
}

TEST(Gathering, SixtyThatFloodAndThirtyShortCommandsAllEnd) {
    const TestAgent agent;
    const auto follow = [&](const std::string& script) {
        return std::make_unique<CommandStream>(agent, "/process.Process/Start", shell(script), http::Headers{}, Encoding::json);
    };
    std::vector<std::unique_ptr<CommandStream>> endless, counted;
    for (int i = 0; i < 30; ++i) endless.push_back(follow("while :; do echo x; done"));
    for (int i = 0; i < 30; ++i) counted.push_back(follow(kCount));
    for (int i = 0; i < 30; ++i) {
        CommandStream stream = start(agent, shell("echo " + std::to_string(i)));
        EXPECT_EQ(stream.drain().out, std::to_string(i) + "\n");
    }
    for (auto& stream : counted) {
        EXPECT_EQ(stream->drain().out, lines(3000));
        EXPECT_FALSE(stream->was_cut());
    }
    for (auto& stream : endless) {
        ::process::SendSignalRequest kill;
        ASSERT_TRUE(stream->read_until("x"));
        kill.mutable_process()->set_pid(stream->pid);
        kill.set_signal(::process::SIGNAL_SIGKILL);
        TestClient client(agent);
        EXPECT_EQ(client.call<::process::SendSignalResponse>("/process.Process/SendSignal", kill).second.head.status, 200);
    }
}

}  // namespace
}  // namespace gb::agent
