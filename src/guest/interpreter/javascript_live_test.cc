// SPDX-License-Identifier: Apache-2.0
// JavaScript and TypeScript contexts: the whole server with the Node.js of the templates, which
// GLOVEBOX_TEST_NODE and GLOVEBOX_TEST_NODE_MODULES name. What the kernel itself does is tested in
// tests/kernel/js.
#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

std::string environment(const char* name) {
    const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value != nullptr ? value : "";
}

class JavaScriptTest : public InterpreterTest {
  protected:
    std::string what_is_missing() override {
        return environment("GLOVEBOX_TEST_NODE").empty() ? "GLOVEBOX_TEST_NODE is not set" : "";
    }
    void configure(InterpreterOptions& options) override {
        options.languages = {"javascript"};
        options.runtimes.node = environment("GLOVEBOX_TEST_NODE");
        EXPECT_FALSE(options.runtimes.node_entropy.empty()) << "glovebox-entropy.node is not beside the test";
        options.runtimes.node_modules = environment("GLOVEBOX_TEST_NODE_MODULES");
    }

    Answer js(std::string_view code, json::object more = {}) {
        more["language"] = "js";
        return execute(code, std::move(more));
    }
};

TEST_F(JavaScriptTest, ContractExamples) {
    EXPECT_EQ(js("console.log('Hello World!')").out(), "Hello World!\n");
    EXPECT_EQ(js("import { readFileSync } from 'fs'\nconsole.log(typeof readFileSync)").out(), "function\n");
    EXPECT_EQ(js("\n  await Promise.resolve('Hello World!')\n").main_result(), "Hello World!");
    EXPECT_EQ(js("process.cwd()").main_result(), run_dir.string());
    EXPECT_EQ(execute("const message: string = 'Hi'; console.log(message)", {{"language", "ts"}}).out(),
              "Hi\n");
}

TEST_F(JavaScriptTest, StateIsSharedWithTypeScript) {
    js("const x = 20");
    js("const x = 21");
    EXPECT_EQ(execute("enum E { A = 21 }\nx + E.A as number", {{"language", "typescript"}}).main_result(),
              "42");
    EXPECT_EQ(js("E.A").main_result(), "21");
    Answer count = js("1");
    EXPECT_EQ(count.of("number_of_executions")[0].at("execution_count").as_int64(), 5);
}

TEST_F(JavaScriptTest, ResultsAndErrors) {
    Answer object = js("({a: [1, 2.50], b: null})");
    EXPECT_EQ(json::serialize(object.of("result")[0].at("json")), R"({"a":[1,2.5E0],"b":null})");
    Answer failed = js("const y = 1\nnull.x");
    EXPECT_EQ(failed.error(), "TypeError");
    EXPECT_THAT(std::string(failed.of("error")[0].at("traceback").as_string()), HasSubstr("cell [2]:2"));
    EXPECT_EQ(js("let let = 1").error(), "SyntaxError");
    EXPECT_EQ(js("display.html('<b>x</b>')").of("result")[0].at("html"), "<b>x</b>");
}

TEST_F(JavaScriptTest, Environment) {
    const json::object env{{"env_vars", json::object{{"FOO", "bar"}}}};
    EXPECT_EQ(js("process.env.FOO", env).main_result(), "bar");
    EXPECT_EQ(js("process.env.FOO || 'default'").main_result(), "default");
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"TEAM":"red"})"));
    EXPECT_EQ(js("process.env.TEAM").main_result(), "red");
    EXPECT_EQ(js("require('child_process').execSync('echo $TEAM').toString().trim()").main_result(), "red");
}

TEST_F(JavaScriptTest, OpensslTakesFreshBytesInANewGeneration) {
    EXPECT_EQ(js("process.env.GLOVEBOX_NODE_ENTROPY").main_result(), "(none)");
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "1"));
    Answer seeded = js("require('crypto').randomBytes(8).length");
    EXPECT_EQ(seeded.main_result(), "8");
    EXPECT_EQ(seeded.text("stderr"), "");
    // What the kernel calls.
    const std::string module = find_runtimes().node_entropy;
    EXPECT_EQ(js("const m = {exports: {}}; process.dlopen(m, '" + module + "'); m.exports()").main_result(),
              "true");
}

TEST_F(JavaScriptTest, CellsThatAreNotStoredAreNotCounted) {
    Answer unseen = js("1 + 1", {{"store_history", false}});
    EXPECT_EQ(unseen.main_result(), "2");
    EXPECT_EQ(js("1").of("number_of_executions")[0].at("execution_count").as_int64(), 1);
}

TEST_F(JavaScriptTest, DisconnectInterruptsWhateverRuns) {
    js("globalThis.kept = 1");
    for (const char* code : {"while (true) {}", "await new Promise(() => {})", "await 1; while (true) {}",
                             "require('child_process').execSync('sleep 100')",
                             "setTimeout(() => { while (true) {} });"
                             "await new Promise(() => {})"}) {
        execute_and_leave(code, 400ms, "js");
        const auto before = std::chrono::steady_clock::now();
        EXPECT_EQ(js("kept").main_result(), "1") << code;
        EXPECT_LT(std::chrono::steady_clock::now() - before, 30s) << code;
    }
}

TEST_F(JavaScriptTest, EndOfTheProcess) {
    Answer left = js("console.log('bye'); process.exit(3)");
    EXPECT_EQ(left.out(), "bye\n");
    EXPECT_EQ(left.error(), "ExitCode");
    EXPECT_EQ(error_value(left), "3");
    EXPECT_EQ(js("1 + 1").main_result(), "2");
    EXPECT_EQ(js("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})").error(),
              "ContextRestarting");
    EXPECT_EQ(js("1 + 1").main_result(), "2");
}

TEST_F(JavaScriptTest, KilledKernelsStartAgainAtTheFirstTry) {
    for (int i = 0; i < 5; ++i) {
        const std::string first = js("process.pid").main_result();
        js("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})");
        std::this_thread::sleep_for(1s);
        EXPECT_TRUE(healthy());  // a kernel that did not start is tried again after some seconds only
        const std::string second = js("process.pid").main_result();
        EXPECT_NE(second, first);
        EXPECT_EQ(js("process.pid").main_result(), second);
    }
}

TEST_F(JavaScriptTest, ContextsAreIsolated) {
    js("globalThis.only = 'here'");
    const std::string other = new_context(R"({"language":"javascript","cwd":"/"})");
    EXPECT_EQ(execute("typeof only + process.cwd()", {{"context_id", other}}).main_result(), "undefined/");
    const std::string typed = new_context(R"({"language":"ts"})");
    EXPECT_EQ(execute("let n: number = 1; n", {{"context_id", typed}}).main_result(), "1");
}

TEST_F(JavaScriptTest, MuchOutputAndSlowReaders) {
    EXPECT_EQ(js("for (let i = 0; i < 300000; ++i) console.log('x'.repeat(99))").out().size(), 30'000'000u);
    Answer picture =
        js("const png = Buffer.alloc(20 << 20); png.write('\\x89PNG\\r\\n\\x1a\\n', 'latin1'); png");
    EXPECT_EQ(picture.of("result")[0].at("png").as_string().size(), (20u << 20) / 3 * 4 + 4);
}

}  // namespace
}  // namespace gb::interpreter
