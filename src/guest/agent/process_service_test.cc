// SPDX-License-Identifier: Apache-2.0
// Contract 3.3 and the X cases, against a running agent.
#include <fstream>
#include <regex>

#include <sys/wait.h>

#include <signal.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "guest/agent/agent_test_support.h"

namespace gb::agent {
namespace {

using namespace std::chrono_literals;
using namespace ::process;

ProcessSelector by_pid(std::uint32_t pid) {
    ProcessSelector selector;
    selector.set_pid(pid);
    return selector;
}

std::size_t listed(const TestAgent& agent) {
    TestClient client(agent);
    return static_cast<std::size_t>(
        client.call<ListResponse>("/process.Process/List", ListRequest()).first.processes_size());
}

bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 500; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

bool send_input(const TestAgent& agent, std::uint32_t pid, const std::string& data, bool terminal = false) {
    SendInputRequest request;
    *request.mutable_process() = by_pid(pid);
    (terminal ? *request.mutable_input()->mutable_pty() : *request.mutable_input()->mutable_stdin()) = data;
    TestClient client(agent);
    return client.call<SendInputResponse>("/process.Process/SendInput", request).second.head.status == 200;
}

int send_signal(const TestAgent& agent, std::uint32_t pid, Signal signal) {
    SendSignalRequest request;
    *request.mutable_process() = by_pid(pid);
    request.set_signal(signal);
    TestClient client(agent);
    return client.call<SendSignalResponse>("/process.Process/SendSignal", request).second.head.status;
}

int close_stdin(const TestAgent& agent, std::uint32_t pid) {
    CloseStdinRequest request;
    *request.mutable_process() = by_pid(pid);
    TestClient client(agent);
    return client.call<CloseStdinResponse>("/process.Process/CloseStdin", request).second.head.status;
}

TEST(Start, EventsInOrderAndExitCode) {
    const TestAgent agent;
    for (const Encoding encoding : {Encoding::json, Encoding::binary}) {
        CommandStream stream = start(agent, shell("echo out; echo err >&2; exit 3"), {}, encoding);
        stream.drain();
        EXPECT_EQ(stream.events_before_start, 0);
        EXPECT_GT(stream.pid, 0U);
        EXPECT_EQ(stream.out, "out\n");
        EXPECT_EQ(stream.err, "err\n");
        ASSERT_TRUE(stream.end);
        EXPECT_EQ(stream.end->exit_code(), 3);
        EXPECT_TRUE(stream.end->exited());
        EXPECT_EQ(stream.end->status(), "exit status 3");
        EXPECT_EQ(stream.end->error(), "exit status 3");
        EXPECT_EQ(stream.trailer(), "{}");
    }
}

TEST(Start, SuccessHasNoError) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("true"));
    stream.drain();
    ASSERT_TRUE(stream.end);
    EXPECT_EQ(stream.end->status(), "exit status 0");
    EXPECT_FALSE(stream.end->has_error());
}

TEST(Start, DeathBySignal) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("kill -TERM $$"));
    stream.drain();
    ASSERT_TRUE(stream.end);
    EXPECT_EQ(stream.end->exit_code(), -1);
    EXPECT_FALSE(stream.end->exited());
    EXPECT_EQ(stream.end->status(), "signal: terminated");
    EXPECT_EQ(stream.end->error(), "signal: terminated");
}

TEST(Start, X1X16_OutputIsByteExact) {
    const TestAgent agent;
    const TestFolder folder;
    std::string data;
    for (int i = 0; i < 350'000; ++i) data += "\xE4\xB8\xAD";
    data += std::string("\xE4\xB8\x00\xFF\xFE\r\n\n\n\x80 end without a line end", 33);
    std::ofstream(folder.path("data"), std::ios::binary) << data;
    CommandStream stream = start(agent, shell("cat " + folder.path("data")));
    stream.drain();
    EXPECT_EQ(stream.out.size(), data.size());
    EXPECT_TRUE(stream.out == data);
}

TEST(Start, X23_FailuresAreErrorsAndNotListed) {
    const TestAgent agent;
    const auto failure = [&](const StartRequest& request, http::Headers headers = {}) {
        CommandStream stream = start(agent, request, std::move(headers));
        stream.drain();
        EXPECT_EQ(stream.pid, 0U);
        return stream.trailer();
    };
    StartRequest request;
    EXPECT_NE(failure(request).find("invalid_argument"), std::string::npos);
    request.mutable_process()->set_cmd("no-such-program");
    EXPECT_NE(failure(request).find("not_found"), std::string::npos);
    request.mutable_process()->set_cmd("/etc/passwd");
    EXPECT_NE(failure(request).find("permission_denied"), std::string::npos);
    request = shell("true");
    request.mutable_process()->set_cwd("/no/such");
    EXPECT_EQ(failure(request),
              R"({"error":{"code":"invalid_argument","message":"cwd '/no/such' does not exist"}})");
    request = shell("true");
    (*request.mutable_process()->mutable_envs())["A=B"] = "x";
    EXPECT_NE(failure(request).find("invalid_argument"), std::string::npos);
    EXPECT_EQ(failure(shell("true"), {{"Authorization", "Basic bm9ib2R5LWhlcmU6"}}),
              R"({"error":{"code":"unauthenticated","message":"invalid username: 'nobody-here'"}})");
    EXPECT_NE(failure(shell(std::string(200'000, 'x'))).find("too long"), std::string::npos);  // X18
    EXPECT_EQ(listed(agent), 0U);
}

TEST(Start, X17_AnyByteInArguments) {
    const TestAgent agent;
    StartRequest request;
    request.mutable_process()->set_cmd("printf");
    request.mutable_process()->add_args("%s|");
    request.mutable_process()->add_args("two\nlines \"quoted\" $HOME `x` \\");
    request.mutable_process()->add_args("");
    CommandStream stream = start(agent, request);
    stream.drain();
    EXPECT_EQ(stream.out, "two\nlines \"quoted\" $HOME `x` \\||");
}

TEST(Start, EnvironmentAndWorkingDirectory) {
    const TestFolder folder;
    const TestAgent agent([&](AgentOptions& options) {
        options.settings.env = {{"GLOBAL", "global"}, {"BOTH", "global"}};
        options.settings.default_workdir = folder.path();
    });
    std::filesystem::create_directory(folder.path("sub"));
    StartRequest request = shell("echo $GLOBAL $BOTH $MINE $E2B_SANDBOX $(pwd)");
    (*request.mutable_process()->mutable_envs())["BOTH"] = "request";
    (*request.mutable_process()->mutable_envs())["MINE"] = "mine";
    EXPECT_EQ(start(agent, request).drain().out, "global request mine true " + folder.path() + "\n");
    request.mutable_process()->set_cwd("sub");
    EXPECT_EQ(start(agent, request).drain().out, "global request mine true " + folder.path("sub") + "\n");
}

TEST(Stdin, X10_IsAtItsEndUnlessAskedFor) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("cat; echo done"));
    stream.drain();
    EXPECT_EQ(stream.out, "done\n");
    EXPECT_EQ(close_stdin(agent, stream.pid), 404);  // gone
}

TEST(Stdin, ArrivesInOrderUntilItIsClosed) {
    const TestAgent agent;
    StartRequest request = shell("cat");
    request.set_stdin(true);
    CommandStream stream = start(agent, request);
    stream.next();
    SendInputRequest input;
    const auto pid =
        TestClient(agent).call<ListResponse>("/process.Process/List", ListRequest()).first.processes(0).pid();
    std::string expected;
    for (int i = 0; i < 50; ++i) {
        const std::string line = "line " + std::to_string(i) + std::string(2000, '.') + "\n";
        ASSERT_TRUE(send_input(agent, pid, line));
        expected += line;
    }
    EXPECT_FALSE(send_input(agent, pid, "x", true));  // no terminal
    EXPECT_EQ(close_stdin(agent, pid), 200);
    EXPECT_NE(close_stdin(agent, pid), 200);  // closed, or gone already
    stream.drain();
    EXPECT_EQ(stream.out, expected);
    ASSERT_TRUE(stream.end);
    EXPECT_EQ(stream.end->exit_code(), 0);
}

TEST(Stdin, AsAClientStream) {
    const TestAgent agent;
    StartRequest request = shell("head -n 2");
    request.set_stdin(true);
    request.set_tag("reader");
    CommandStream stream = start(agent, request);
    stream.next();
    StreamInputRequest first, data;
    first.mutable_start()->mutable_process()->set_tag("reader");
    data.mutable_data()->mutable_input()->set_stdin("abc\n");
    std::string body = http::envelope(0, encode_message(Encoding::json, first));
    for (int i = 0; i < 2; ++i) body += http::envelope(0, encode_message(Encoding::json, data));
    TestClient client(agent);
    const auto answer = client.send("POST", "/process.Process/StreamInput",
                                    {{"Content-Type", "application/connect+json"}}, body);
    EXPECT_EQ(answer.head.status, 200);
    EXPECT_EQ(answer.body, http::envelope(0, "{}") + http::end_stream());
    EXPECT_EQ(stream.drain().out, "abc\nabc\n");
}

TEST(Deadline, X2_KillsTheWholeGroup) {
    const TestAgent agent;
    const TestFolder folder;
    const std::int64_t before = monotonic_ms();
    CommandStream stream =
        start(agent, shell("sleep 60 & echo $! > " + folder.path("pid") + "; sleep 60; echo late"),
              {{"Connect-Timeout-Ms", "400"}});
    stream.drain();
    EXPECT_LT(monotonic_ms() - before, 5000);
    EXPECT_FALSE(stream.end);
    EXPECT_NE(stream.trailer().find("deadline_exceeded"), std::string::npos);
    EXPECT_EQ(listed(agent), 0U);
    EXPECT_EQ(::kill(static_cast<pid_t>(stream.pid), 0), -1);
    const pid_t child = std::stoi(*read_file(folder.path("pid")));
    EXPECT_TRUE(eventually([&] {
        const auto stat = read_file("/proc/" + std::to_string(child) + "/stat");
        return !stat || stat->find(") Z ") != std::string::npos;
    }));
}

TEST(Deadline, X3_ZeroMeansNone) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("sleep 0.3; echo ok"), {{"Connect-Timeout-Ms", "0"}});
    EXPECT_EQ(stream.drain().out, "ok\n");
}

TEST(Deadline, AClientThatGivesUpJustBeforeItFindsTheProcessGone) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("sleep 60"), {{"Connect-Timeout-Ms", "400"}});
    stream.next();
    std::this_thread::sleep_for(300ms);
    stream.disconnect();
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(listed(agent), 0U);
}

TEST(Disconnect, LeavesTheProcessAloneAndConnectFollowsIt) {
    const TestAgent agent;
    StartRequest request = shell("read line; echo got $line; exit 5");
    request.set_stdin(true);
    request.set_tag("mine");
    std::uint32_t pid = 0;
    {
        CommandStream stream = start(agent, request);
        pid = stream.next()->start().pid();
    }
    EXPECT_EQ(listed(agent), 1U);
    ConnectRequest connect;
    connect.mutable_process()->set_tag("mine");
    CommandStream first(agent, "/process.Process/Connect", connect);
    CommandStream second(agent, "/process.Process/Connect", connect, {}, Encoding::binary);
    ASSERT_EQ(first.next()->start().pid(), pid);
    ASSERT_EQ(second.next()->start().pid(), pid);
    ASSERT_TRUE(send_input(agent, pid, "hello\n"));
    for (CommandStream* stream : {&first, &second}) {
        EXPECT_EQ(stream->drain().out, "got hello\n");
        ASSERT_TRUE(stream->end);
        EXPECT_EQ(stream->end->exit_code(), 5);
    }
    // X4: its end can be asked for afterwards.
    *connect.mutable_process() = by_pid(pid);
    CommandStream late(agent, "/process.Process/Connect", connect);
    late.drain();
    EXPECT_EQ(late.pid, pid);
    ASSERT_TRUE(late.end);
    EXPECT_EQ(late.end->exit_code(), 5);
    *connect.mutable_process() = by_pid(999999);
    EXPECT_EQ(CommandStream(agent, "/process.Process/Connect", connect).drain().trailer(),
              R"({"error":{"code":"not_found","message":"process with pid 999999 not found"}})");
}

TEST(Disconnect, X6_OutputWithoutAReaderIsDropped) {
    const TestAgent agent;
    const TestFolder folder;
    {
        CommandStream stream =
            start(agent, shell("head -c 100000000 /dev/zero; echo done > " + folder.path("done")));
        stream.next();
    }
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder.path("done")); }));
}

TEST(Disconnect, X9_ManyInTheMiddleOfAStream) {
    const TestAgent agent;
    for (int i = 0; i < 100; ++i) {
        CommandStream stream =
            start(agent, shell("i=0; while [ $i -lt 20 ]; do echo some output; i=$((i+1)); done"));
        for (int k = 0; k < i % 4; ++k) stream.next();
    }
    EXPECT_EQ(start(agent, shell("echo alive")).drain().out, "alive\n");
    EXPECT_TRUE(eventually([&] { return listed(agent) == 0; }));
}

TEST(Followers, ASlowOneLosesNothing) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("head -c 30000000 /dev/zero | tr '\\0' x"));
    stream.next();
    std::this_thread::sleep_for(1500ms);
    EXPECT_EQ(stream.drain().out.size(), 30'000'000U);
    EXPECT_FALSE(stream.was_cut());
}

TEST(Followers, OneThatDoesNotReadIsCutAndHoldsUpNobody) {
    const TestAgent agent;
    StartRequest request = shell("read go; head -c 60000000 /dev/zero");
    request.set_stdin(true);
    CommandStream good = start(agent, request);
    const std::uint32_t pid = good.next()->start().pid();
    ConnectRequest connect;
    *connect.mutable_process() = by_pid(pid);
    CommandStream dead(agent, "/process.Process/Connect", connect);
    dead.next();
    ASSERT_TRUE(send_input(agent, pid, "go\n"));
    EXPECT_EQ(good.drain().out.size(), 60'000'000U);
    dead.drain();
    EXPECT_TRUE(dead.was_cut());
    EXPECT_FALSE(dead.end);
}

TEST(End, ABackgroundChildDoesNotHoldItUp) {
    const TestAgent agent;
    const TestFolder folder;
    const std::int64_t before = monotonic_ms();
    // The child outlives the command, and a later write into the pipe does not kill it.
    CommandStream stream = start(agent, shell("(sleep 0.5; echo late; sleep 0.2; echo x; echo ok > " +
                                              folder.path("ok") + ") & echo now"));
    stream.drain();
    EXPECT_LT(monotonic_ms() - before, 450);
    EXPECT_EQ(stream.out, "now\n");
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(folder.path("ok")); }));
}

TEST(End, ComesAfterAllOutput) {
    const TestAgent agent;
    for (int i = 0; i < 30; ++i) {
        CommandStream stream =
            start(agent, shell("head -c 200000 /dev/zero; sleep 0.5 & head -c 50000 /dev/zero >&2"));
        stream.drain();
        EXPECT_EQ(stream.out.size(), 200'000U);
        EXPECT_EQ(stream.err.size(), 50'000U);
    }
}

TEST(Signals, KillEndsTheGroupAndIsNotFoundAfterwards) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("sleep 60; true"));
    const std::uint32_t pid = stream.next()->start().pid();
    EXPECT_EQ(send_signal(agent, pid, SIGNAL_UNSPECIFIED), 501);
    EXPECT_EQ(send_signal(agent, pid, SIGNAL_SIGKILL), 200);
    stream.drain();
    ASSERT_TRUE(stream.end);
    EXPECT_EQ(stream.end->status(), "signal: killed");
    EXPECT_EQ(send_signal(agent, pid, SIGNAL_SIGKILL), 404);
    EXPECT_EQ(::kill(static_cast<pid_t>(pid), 0), -1);
}

TEST(Processes, X14_NoZombiesAndNoDescriptorsLeft) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }  // what the agents of other tests had not collected when they went
    const TestAgent agent;
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    start(agent, shell("true")).drain();
    const auto before = descriptors();
    for (int i = 0; i < 200; ++i) start(agent, shell("true")).drain();
    EXPECT_TRUE(eventually([&] { return descriptors() <= before + 2; }));
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no children at all
}

TEST(Keepalive, AtTheClientsInterval) {
    const TestAgent agent;
    CommandStream stream = start(agent, shell("sleep 2.5"), {{"Keepalive-Ping-Interval", "1"}});
    stream.drain();
    EXPECT_EQ(stream.keepalives, 2);
}

TEST(Terminal, SizeInputAndResize) {
    const TestAgent agent;
    StartRequest request;
    request.mutable_process()->set_cmd("/bin/sh");
    request.mutable_pty()->mutable_size()->set_cols(123);
    request.mutable_pty()->mutable_size()->set_rows(45);
    CommandStream stream = start(agent, request);
    const std::uint32_t pid = stream.next()->start().pid();
    ASSERT_TRUE(send_input(agent, pid, "stty size; echo term=$TERM; tty\n", true));
    ASSERT_TRUE(stream.read_until("term=xterm-256color"));
    EXPECT_NE(stream.terminal.find("45 123"), std::string::npos) << stream.terminal;
    UpdateRequest update;
    *update.mutable_process() = by_pid(pid);
    update.mutable_pty()->mutable_size()->set_cols(60);
    update.mutable_pty()->mutable_size()->set_rows(20);
    EXPECT_EQ(TestClient(agent).call<UpdateResponse>("/process.Process/Update", update).second.head.status,
              200);
    ASSERT_TRUE(send_input(agent, pid, "stty size; exit 4\n", true));
    stream.drain();
    EXPECT_NE(stream.terminal.find("20 60"), std::string::npos) << stream.terminal;
    ASSERT_TRUE(stream.end);
    EXPECT_EQ(stream.end->exit_code(), 4);
}

TEST(Terminal, X27_RawInputBeyondOneLineInOrder) {
    const TestAgent agent;
    StartRequest request = shell("stty raw -echo; echo ready; head -c 60000 | sha256sum");
    request.clear_stdin();
    request.mutable_pty()->mutable_size()->set_cols(80);
    request.mutable_pty()->mutable_size()->set_rows(24);
    CommandStream stream = start(agent, request);
    const std::uint32_t pid = stream.next()->start().pid();
    ASSERT_TRUE(stream.read_until("ready"));
    std::string all;
    for (int i = 0; i < 12; ++i) {
        const std::string piece(5000, static_cast<char>('a' + i));
        ASSERT_TRUE(send_input(agent, pid, piece, true));
        all += piece;
    }
    stream.drain();
    EXPECT_NE(stream.terminal.find(sha256_hex(all)), std::string::npos) << stream.terminal;
}

TEST(Terminal, KillEndsItsJobsToo) {
    const TestAgent agent;
    StartRequest request;
    request.mutable_process()->set_cmd("/bin/bash");
    request.mutable_process()->add_args("--norc");
    request.mutable_process()->add_args("-i");
    request.mutable_pty()->mutable_size()->set_cols(80);
    request.mutable_pty()->mutable_size()->set_rows(24);
    CommandStream stream = start(agent, request);
    const std::uint32_t pid = stream.next()->start().pid();
    ASSERT_TRUE(send_input(agent, pid, "sleep 61 & echo job=$!=\n", true));
    // The terminal echoes the command too: the number is what differs.
    std::smatch match;
    while (!std::regex_search(stream.terminal, match, std::regex("job=([0-9]+)=")))
        ASSERT_TRUE(stream.read_more());
    const pid_t job = std::stoi(match[1]);
    EXPECT_EQ(send_signal(agent, pid, SIGNAL_SIGKILL), 200);
    stream.drain();
    EXPECT_TRUE(eventually([&] {
        const auto stat = read_file("/proc/" + std::to_string(job) + "/stat");
        return !stat || stat->find(") Z ") != std::string::npos;
    }));
}

TEST(Rpc, LongMessagesArePackedForWhoAsks) {
    const TestAgent agent;
    const StartRequest request = shell("head -c 100000 /dev/zero | tr '\\0' x; echo end");
    for (const Encoding encoding : {Encoding::json, Encoding::binary}) {
        auto packed = start(agent, request, {{"Connect-Accept-Encoding", "br, gzip"}}, encoding);
        packed.drain();
        EXPECT_EQ(packed.out, std::string(100000, 'x') + "end\n");
        EXPECT_GT(packed.compressed_frames(), 0);
        auto plain = start(agent, request, {}, encoding);
        EXPECT_EQ(plain.drain().out, packed.out);
        EXPECT_EQ(plain.compressed_frames(), 0);
    }
    TestClient client(agent);
    auto running = start(agent, shell("sleep 100 # " + std::string(5000, 'x')));
    running.read_more();
    const http::Headers json{{"Content-Type", "application/json"}, {"Accept-Encoding", "gzip"}};
    const auto answer = client.send("POST", "/process.Process/List", json, "{}");
    ASSERT_EQ(answer.head.headers.get("Content-Encoding"), "gzip");
    EXPECT_NE(gunzip(answer.body, 100'000).value().find(std::string(5000, 'x')), std::string::npos);
    SendSignalRequest kill;
    kill.mutable_process()->set_pid(running.pid);
    kill.set_signal(SIGNAL_SIGKILL);
    client.call<SendSignalResponse>("/process.Process/SendSignal", kill);
}

TEST(Rpc, WrongTypesAndMethods) {
    const TestAgent agent;
    TestClient client(agent);
    EXPECT_EQ(
        client.send("POST", "/process.Process/List", {{"Content-Type", "text/plain"}}, "{}").head.status,
        415);
    const auto nothing =
        client.send("POST", "/process.Process/Nothing", {{"Content-Type", "application/json"}}, "{}");
    EXPECT_EQ(nothing.head.status, 501);
    EXPECT_NE(nothing.body.find(R"("code":"unimplemented")"), std::string::npos);
    CommandStream watch(agent, "/filesystem.Filesystem/WatchNothing", StartRequest());
    EXPECT_NE(watch.drain().trailer().find(R"("code":"unimplemented")"), std::string::npos);
    const auto broken =
        client.send("POST", "/process.Process/List", {{"Content-Type", "application/json"}}, "{");
    EXPECT_EQ(broken.head.status, 400);
    EXPECT_NE(broken.body.find(R"("code":"invalid_argument")"), std::string::npos);
    const auto unknown = client.send("POST", "/process.Process/SendSignal",
                                     {{"Content-Type", "application/json; charset=utf-8"}},
                                     R"({"process":{"pid":999999},"signal":9,"new_field":{}})");
    EXPECT_EQ(unknown.head.status, 404);
    EXPECT_EQ(unknown.body, R"({"code":"not_found","message":"process with pid 999999 not found"})");
}

}  // namespace
}  // namespace gb::agent
