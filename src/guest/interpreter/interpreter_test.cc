// SPDX-License-Identifier: Apache-2.0
// The whole server against a real ipykernel. Names follow contract section 4; skipped where there is no
// ipykernel.
#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

TEST_F(InterpreterTest, ResultCountAndEndInOrder) {
    Answer answer = execute("1+1");
    ASSERT_EQ(answer.lines.size(), 3u);
    EXPECT_EQ(answer.lines[0], json::parse(R"({"type":"number_of_executions","execution_count":1})"));
    EXPECT_EQ(answer.lines[1],
              json::parse(R"({"type":"result","text":"2","extra":{},"is_main_result":true})"));
    EXPECT_EQ(execute("2+2").lines[0].at("execution_count"), 2) << "hidden requests are not counted";
}

TEST_F(InterpreterTest, HealthSaysWhatIsBeingStarted) {
    ASSERT_FALSE(starting.empty());
    for (const std::string& body : starting) {
        const json::value said = json::parse(body);
        EXPECT_EQ(said.at("status"), "starting");
        const json::array& steps = said.at("startup").as_array();
        ASSERT_EQ(steps.size(), 1u);
        EXPECT_EQ(steps[0].at("name"), "python");
        EXPECT_THAT(std::string(steps[0].at("state").as_string()), testing::AnyOf("waits", "starting"));
    }
}

TEST_F(InterpreterTest, StateIsKept) {
    execute("x = 41\ndef f(): return x + 1");
    EXPECT_EQ(execute("f()").main_result(), "42");
}

TEST_F(InterpreterTest, StreamsAreSeparate) {
    Answer answer = execute("import sys\nprint('out')\nprint('err', file=sys.stderr)");
    EXPECT_EQ(answer.out(), "out\n");
    EXPECT_EQ(answer.text("stderr"), "err\n");
    EXPECT_TRUE(parse_rfc3339(std::string_view(answer.of("stdout")[0].at("timestamp").as_string())));
}

TEST_F(InterpreterTest, OutputOfSubprocessesAndThreadsIsSeen) {
    EXPECT_EQ(
        execute("import subprocess\n_ = subprocess.run(['echo', 'hi'])\nimport os\nos.system('echo there');")
            .out(),
        "hi\nthere\n");
}

TEST_F(InterpreterTest, ExceptionHasPlainTraceback) {
    Answer answer = execute("def f():\n    return 1/0\nf()");
    auto error = answer.of("error");
    ASSERT_EQ(error.size(), 1u);
    EXPECT_EQ(error[0].at("name"), "ZeroDivisionError");
    EXPECT_EQ(error[0].at("value"), "division by zero");
    const std::string traceback(std::string_view(error[0].at("traceback").as_string()));
    EXPECT_THAT(traceback, HasSubstr("return 1/0"));
    EXPECT_EQ(traceback.find('\x1b'), std::string::npos) << "colours are off";
    EXPECT_EQ(execute("1").main_result(), "1") << "the next request is not refused";
}

TEST_F(InterpreterTest, ErrorsThenCellsInQuickSuccession) {
    for (int i = 0; i < 30; ++i) {
        EXPECT_EQ(execute("1/0").error(), "ZeroDivisionError");
        EXPECT_EQ(execute("7").main_result(), "7");
    }
}

TEST_F(InterpreterTest, FastCodeNeverLosesOutput) {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(execute("print('x')").out(), "x\n") << i;
}

TEST_F(InterpreterTest, SyntaxError) {
    EXPECT_EQ(execute("def (").error(), "SyntaxError");
}

TEST_F(InterpreterTest, EmptyCode) {
    EXPECT_EQ(execute("").error(), "(none)");
    EXPECT_EQ(execute("# nothing").error(), "(none)");
}

TEST_F(InterpreterTest, UnicodeAndUndecodableText) {
    EXPECT_EQ(execute("print('grüße 😀')").out(), "grüße 😀\n");
    EXPECT_EQ(execute("'é'").main_result(), "é");
    EXPECT_THAT(execute("print('bad \\udc80 end')").out(), HasSubstr(" end"));
    EXPECT_THAT(execute("print('worse \\ud800 end')").out(), HasSubstr(" end"));
}

TEST_F(InterpreterTest, IndentedCodeRuns) {
    EXPECT_EQ(execute("\n        x = 3\n        x\n        ").main_result(), "3");
}

TEST_F(InterpreterTest, ListsAndDictsAreJsonToo) {
    Answer answer = execute("{'a': [1, 2.5, None, True], 2: float('nan')}");
    EXPECT_EQ(answer.of("result").at(0).at("json"), json::parse(R"({"a":[1,2.5,null,true],"2":null})"));
    EXPECT_FALSE(execute("[object()]").of("result").at(0).contains("json"));
    EXPECT_THAT(execute("list(range(2000))").main_result(), HasSubstr("1999]"))
        << "sequences are not shortened";
}

TEST_F(InterpreterTest, DataFrameIsData) {
    if (run({"/usr/bin/python3", "-c", "import pandas"})->exit_code != 0) GTEST_SKIP() << "no pandas";
    Answer answer = execute(
        "import pandas as pd\n"
        "pd.DataFrame({'a': [1, 2], 'b': ['x', None], 't': pd.to_datetime(['2024-01-02', None])})");
    auto result = answer.of("result");
    ASSERT_EQ(result.size(), 1u) << answer.error();
    EXPECT_EQ(result[0].at("data"),
              json::parse(R"({"a":[1,2],"b":["x",null],"t":["2024-01-02T00:00:00",null]})"));
    EXPECT_THAT(std::string(std::string_view(result[0].at("html").as_string())), HasSubstr("<table"));
}

TEST_F(InterpreterTest, FigureIsPngAndChart) {
    if (run({"/usr/bin/python3", "-c", "import matplotlib"})->exit_code != 0) GTEST_SKIP() << "no matplotlib";
    Answer answer = execute(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='l')\nplt.xlabel('Time "
        "(s)')\nplt.show()");
    auto result = answer.of("result");
    ASSERT_EQ(result.size(), 1u) << answer.error();
    EXPECT_TRUE(result[0].at("png").as_string().starts_with("iVBOR"));
    EXPECT_EQ(result[0].at("is_main_result"), false);
    EXPECT_EQ(result[0].at("extra"), json::object());
    auto& chart = result[0].at("chart").as_object();
    EXPECT_EQ(chart.at("type"), "line");
    EXPECT_EQ(chart.at("x_label"), "Time (s)");
    EXPECT_EQ(chart.at("x_unit"), "s");
    EXPECT_EQ(chart.at("elements"), json::parse(R"([{"label":"l","points":[[1.0,3.0],[2.0,4.0]]}])"));
}

TEST_F(InterpreterTest, ContextsAreIsolatedAndListedInOrder) {
    const std::string one = new_context(), two = new_context(R"({"cwd":"/usr"})");
    execute("x = 1", {{"context_id", one}});
    EXPECT_EQ(execute("x", {{"context_id", two}}).error(), "NameError");
    EXPECT_EQ(execute("x").error(), "NameError");
    EXPECT_EQ(execute("x", {{"context_id", one}}).main_result(), "1");
    EXPECT_EQ(execute("import os; os.getcwd()", {{"context_id", two}}).main_result(), "/usr");
    auto list = json::parse(request("GET", "/contexts").body).as_array();
    ASSERT_EQ(list.size(), 3u);
    EXPECT_EQ(list[0].as_object()["language"], "python");
    EXPECT_EQ(list[2], json::value({{"id", two}, {"language", "python"}, {"cwd", "/usr"}}));

    EXPECT_EQ(request("DELETE", "/contexts/" + one).body, "null");
    EXPECT_EQ(request("DELETE", "/contexts/" + one).head.status, 404);
    EXPECT_EQ(json::parse(request("GET", "/contexts").body).as_array().size(), 2u);
}

TEST_F(InterpreterTest, ContextsRunInParallel) {
    const std::string one = new_context(), two = new_context();
    // Each waits for the other's file: only possible side by side.
    auto code = [&](const std::string& mine, const std::string& other) {
        return "import os, time\nopen('" + mine +
               "', 'w').close()\nfor _ in range(200):\n    if os.path.exists('" + other +
               "'): break\n    time.sleep(0.05)\nos.path.exists('" + other + "')";
    };
    auto first =
        std::async(std::launch::async, [&] { return execute(code("f1", "f2"), {{"context_id", one}}); });
    EXPECT_EQ(execute(code("f2", "f1"), {{"context_id", two}}).main_result(), "True");
    EXPECT_EQ(first.get().main_result(), "True");
}

TEST_F(InterpreterTest, OneContextRunsInOrderOfArrival) {
    execute("order = []");
    std::vector<std::future<Answer>> answers;
    for (int i = 0; i < 5; ++i) {
        answers.push_back(std::async(std::launch::async, [this, i] {
            return execute("import time; time.sleep(0.2); order.append(" + std::to_string(i) + ")");
        }));
        std::this_thread::sleep_for(50ms);
    }
    for (auto& answer : answers) EXPECT_EQ(answer.get().error(), "(none)");
    EXPECT_EQ(execute("order").main_result(), "[0, 1, 2, 3, 4]");
}

TEST_F(InterpreterTest, RestartForgetsStateAndEndsTheRunningCell) {
    const std::string id = new_context();
    execute("x = 1", {{"context_id", id}});
    auto running = std::async(std::launch::async,
                              [&] { return execute("import time; time.sleep(60)", {{"context_id", id}}); });
    std::this_thread::sleep_for(300ms);
    Response restarted = request("POST", "/contexts/" + id + "/restart");
    EXPECT_EQ(restarted.head.status, 200);
    EXPECT_EQ(restarted.body, "null");
    EXPECT_EQ(running.get().error(), "ContextRestarting");
    Answer answer = execute("x", {{"context_id", id}});
    EXPECT_EQ(answer.error(), "NameError");
    EXPECT_EQ(answer.of("error")[0].at("value"), "name 'x' is not defined");
}

TEST_F(InterpreterTest, RemovedContextEndsItsCells) {
    const std::string id = new_context();
    auto running = std::async(std::launch::async,
                              [&] { return execute("import time; time.sleep(60)", {{"context_id", id}}); });
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(request("DELETE", "/contexts/" + id).head.status, 200);
    EXPECT_EQ(running.get().error(), "UnexpectedEndOfExecution");
}

TEST_F(InterpreterTest, RemovedDefaultContextIsMadeAgain) {
    execute("x = 1");
    auto list = json::parse(request("GET", "/contexts").body).as_array();
    request("DELETE", "/contexts/" + std::string(std::string_view(list[0].as_object()["id"].as_string())));
    EXPECT_EQ(execute("x").error(), "NameError");
}

TEST_F(InterpreterTest, CallEnvIsSetThenTakenBack) {
    execute("import os; os.environ['KEPT'] = 'mine'");
    json::object env{{"FOO", "it's \"quoted\"\nünd\\"}, {"KEPT", "theirs"}};
    EXPECT_EQ(execute("print(os.environ['FOO'], os.environ['KEPT'], end='')", {{"env_vars", env}}).out(),
              "it's \"quoted\"\nünd\\ theirs");
    EXPECT_EQ(execute("print(os.getenv('FOO'), os.environ['KEPT'], end='')").out(), "None mine");
    EXPECT_EQ(execute("1/0", {{"env_vars", env}}).error(), "ZeroDivisionError");
    EXPECT_EQ(execute("os.getenv('FOO', 'gone')").main_result(), "gone");
}

TEST_F(InterpreterTest, NewGenerationSeedsAndSetsEnv) {
    const std::string expected =
        execute("import random, os; random.seed(1); [random.random() for _ in range(2)][1]").main_result();
    execute("random.seed(1); random.random();");
    EXPECT_EQ(execute("random.random()").main_result(), expected)
        << "without a new generation seeds are kept";

    execute("random.seed(1); random.random();");
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"A":"1","B":"x'y"})"));
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "1\n"));
    EXPECT_NE(execute("random.random()").main_result(), expected);
    EXPECT_EQ(execute("print(os.environ['A'], os.environ['B'], end='')").out(), "1 x'y");

    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"A":"2"})"));
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "2\n"));
    EXPECT_EQ(execute("print(os.environ['A'], os.getenv('B'), end='')").out(), "2 None");
    const std::string id = new_context();
    EXPECT_EQ(execute("import os; os.environ['A']", {{"context_id", id}}).main_result(), "2")
        << "new kernels too";
}

TEST_F(InterpreterTest, NumpyIsSeededToo) {
    if (run({"/usr/bin/python3", "-c", "import numpy"})->exit_code != 0) GTEST_SKIP() << "no numpy";
    execute("import numpy as np; np.random.seed(1)");
    const std::string expected = execute("np.random.rand()").main_result();
    execute("np.random.seed(1)");
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "1"));
    EXPECT_NE(execute("np.random.rand()").main_result(), expected);
}

TEST_F(InterpreterTest, DisconnectInterruptsThePythonLoop) {
    execute("x = 5");
    execute_and_leave("while True: pass", 500ms);
    const std::int64_t start = monotonic_ms();
    EXPECT_EQ(execute("x + 1").main_result(), "6") << "the state is kept";
    EXPECT_LT(monotonic_ms() - start, 5'000);
}

TEST_F(InterpreterTest, DisconnectInterruptsWhatCatchesTheFirstSignal) {
    execute_and_leave("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    time.sleep(60)",
                      500ms);
    EXPECT_EQ(execute("1+1").main_result(), "2");
}

TEST_F(InterpreterTest, DisconnectInterruptsAShellCommand) {
    execute_and_leave("import os\nos.system('sleep 60')", 500ms);
    EXPECT_EQ(execute("1+1").main_result(), "2");
}

TEST_F(InterpreterTest, DisconnectAtOnceStillInterrupts) {
    for (int i = 0; i < 5; ++i) execute_and_leave("while True: pass", std::chrono::milliseconds(i));
    EXPECT_EQ(execute("1+1").main_result(), "2");
}

TEST_F(InterpreterTest, QueuedCellOfAGoneClientIsNotRun) {
    execute("ran = False");
    auto first = std::async(std::launch::async, [&] { return execute("import time; time.sleep(1)"); });
    std::this_thread::sleep_for(200ms);
    execute_and_leave("ran = True", 100ms);
    first.get();
    EXPECT_EQ(execute("ran").main_result(), "False");
}

TEST_F(InterpreterTest, DeadKernelIsAnErrorAndStartsAgain) {
    execute("x = 1");
    Answer answer = execute("import os; os._exit(3)");
    EXPECT_EQ(answer.error(), "ContextRestarting");
    EXPECT_THAT(std::string(std::string_view(answer.of("error")[0].at("value").as_string())),
                HasSubstr("exited with code 3"));
    EXPECT_EQ(execute("x").error(), "NameError");
    EXPECT_THAT(
        json::serialize(execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").of("error").at(0)),
        HasSubstr("killed by signal 9"));
    EXPECT_EQ(execute("1+1").main_result(), "2");
    for (int i = 0; i < 100 && !healthy(); ++i) std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(healthy());
}

TEST_F(InterpreterTest, ExitTakesNoOtherCellWithIt) {
    execute("x = 1");
    EXPECT_EQ(execute("exit()").error(), "(none)");
    EXPECT_EQ(execute("x").error(), "NameError");
    EXPECT_EQ(execute("import time; time.sleep(2); 5").main_result(), "5");
}

TEST_F(InterpreterTest, LargeOutput) {
    Answer answer = execute("print('x' * 5_000_000)\nfor i in range(20000): print(i)");
    EXPECT_EQ(answer.out().size(), 5'000'001 + 108'890u);
}

TEST_F(InterpreterTest, ManyDisplayMessagesAreAllDelivered) {
    EXPECT_EQ(execute("for i in range(5000): display(i)").of("result").size(), 5000u);
}

TEST_F(InterpreterTest, SlowReaderStopsTheCodeNotTheServer) {
    asio::io_context client;
    http::tcp::socket socket(client);
    socket.connect({asio::ip::make_address("127.0.0.1"), port});
    const std::string body = R"({"code":"n = 0\nwhile n < 2000:\n    print('x' * 100_000)\n    n += 1"})";
    asio::write(socket, asio::buffer("POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                     std::to_string(body.size()) + "\r\n\r\n" + body));
    std::this_thread::sleep_for(2s);
    const std::string id = new_context();
    EXPECT_EQ(execute("1+1", {{"context_id", id}}).main_result(), "2") << "others are served";
    std::size_t received = 0;
    std::string tail;
    std::vector<char> chunk(1 << 20);
    boost::system::error_code error;
    while (!tail.ends_with("0\r\n\r\n")) {
        const std::size_t n = socket.read_some(asio::buffer(chunk), error);
        if (error) break;
        received += n;
        tail = (tail + std::string(chunk.data(), n)).substr(std::max<std::size_t>(tail.size() + n, 64) - 64);
    }
    EXPECT_GT(received, 200'000'000u);
}

TEST_F(InterpreterTest, KeepaliveWhileSilent) {
    EXPECT_GE(execute("import time; time.sleep(6)").of("keepalive").size(), 1u);
}

// Contract 4.1: statuses and texts.
TEST_F(InterpreterTest, Refusals) {
    Response both = request("POST", "/execute", R"({"code":"1","context_id":"a","language":"python"})");
    EXPECT_EQ(both.head.status, 400);
    EXPECT_EQ(both.body, "Only one of context_id or language can be provided");
    Response unknown = request("POST", "/execute", R"({"code":"1","context_id":"nope"})");
    EXPECT_EQ(unknown.head.status, 404);
    EXPECT_EQ(unknown.body, "Context nope not found");
    EXPECT_EQ(request("POST", "/contexts/nope/restart").head.status, 404);
    Response language = request("POST", "/execute", R"({"code":"1","language":"cobol"})");
    EXPECT_EQ(language.head.status, 500);
    EXPECT_THAT(language.body, HasSubstr("No kernel for language 'cobol' in this sandbox. Available: "));
    EXPECT_THAT(language.body, HasSubstr("python"));
    EXPECT_EQ(request("POST", "/contexts", R"({"cwd":"/no/such/folder"})").head.status, 500);
    EXPECT_EQ(request("POST", "/execute", "{").head.status, 422);
    EXPECT_EQ(request("GET", "/execute").head.status, 405);
    Response nowhere = request("GET", "/nowhere");
    EXPECT_EQ(nowhere.head.status, 404);
    EXPECT_EQ(nowhere.head.headers.get("Access-Control-Allow-Origin"), "*");
    EXPECT_EQ(request("OPTIONS", "/execute").head.status, 204);
}

TEST_F(InterpreterTest, CellsThatAreNotStoredAreNotCounted) {
    EXPECT_EQ(execute("1 + 1", {{"store_history", false}}).main_result(), "2");
    EXPECT_EQ(execute("1").of("number_of_executions")[0].at("execution_count").as_int64(), 1);
}

TEST_F(InterpreterTest, OutputFasterThanAnybodyReadsTakesNoMemory) {
    Answer answer = execute(
        "import sys\n"
        "def peak(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])\n"
        "before = peak()\n"
        "for _ in range(40): n = sys.stdout.write('x' * (1 << 20))\n"
        "n = sys.stdout.write('y' * (20 << 20))\n"
        "(peak() - before) // 1024");
    EXPECT_EQ(answer.out().size(), 60u << 20);
    EXPECT_LT(std::stol(answer.main_result()), 200);  // MiB
}

TEST_F(InterpreterTest, LanguageNameIsNormalised) {
    EXPECT_EQ(execute("1+1", {{"language", " PYTHON "}}).main_result(), "2");
}

}  // namespace
}  // namespace gb::interpreter
