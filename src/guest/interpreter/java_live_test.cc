// SPDX-License-Identifier: Apache-2.0
// Java contexts: the whole server with the JDK of this machine. What the kernel itself does is tested in
// tests/kernel/test_java.py.
#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

class JavaTest : public InterpreterTest {
  protected:
    std::string what_is_missing() override {
        const Runtimes found = find_runtimes();
        return found.java.empty() || found.javac.empty() ? "no JDK (package openjdk-17-jdk-headless)" : "";
    }
    void configure(InterpreterOptions& options) override { options.languages = {"java"}; }

    Answer java(std::string_view code, json::object more = {}) {
        more["language"] = "java";
        return execute(code, std::move(more));
    }
};

TEST_F(JavaTest, CellsOfEveryKind) {
    Answer hello = java("System.out.println(\"Hello, World!\")");
    EXPECT_EQ(hello.out(), "Hello, World!\n");
    EXPECT_EQ(hello.of("stdout")[0].at("text"), "Hello, World!");
    EXPECT_EQ(java("int x = 20;").main_result(), "(none)");
    EXPECT_EQ(java("x + 22").main_result(), "42");
    EXPECT_EQ(java("\"it's \\\"quoted\\\"\"").main_result(), "it's \"quoted\"");
    EXPECT_EQ(java("System.getProperty(\"user.dir\")").main_result(), run_dir.string());
    EXPECT_EQ(java("x / 0").error(), "java.lang.ArithmeticException");
    EXPECT_EQ(java("int broken = ;").error(), "CompilationError");
    EXPECT_EQ(java("System.err.print(\"err\")").text("stderr"), "err");

    const json::object env{{"env_vars", json::object{{"FOO", "bar"}}}};
    EXPECT_EQ(java("System.getProperty(\"FOO\") + System.getenv(\"FOO\")", env).main_result(), "barbar");
    EXPECT_EQ(java("System.getProperty(\"FOO\", \"default\") + System.getenv(\"FOO\")").main_result(),
              "defaultnull");
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"TEAM":"red"})"));
    EXPECT_EQ(java("System.getProperty(\"TEAM\")").main_result(), "red");

    execute_and_leave("while (true) { }", 500ms, "java");
    EXPECT_EQ(java("x").main_result(), "20");  // it is the same kernel

    Answer left = java("System.exit(3)");
    EXPECT_EQ(left.error(), "ExitCode");
    EXPECT_EQ(error_value(left), "3");
    EXPECT_EQ(java("1 + 1").main_result(), "2");
    EXPECT_EQ(java("x").error(), "CompilationError");
}

}  // namespace
}  // namespace gb::interpreter
