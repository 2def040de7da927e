// SPDX-License-Identifier: Apache-2.0
// R contexts: the whole server with a real IRkernel.
#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

class RTest : public InterpreterTest {
  protected:
    std::string what_is_missing() override {
        const Runtimes found = find_runtimes();
        if (found.r.empty()) return "no R (package r-cran-irkernel)";
        auto output = gb::run({found.r, "--no-echo", "-e", "stopifnot(requireNamespace('IRkernel'))"});
        return output && output->exit_code == 0 ? "" : "R has no IRkernel (package r-cran-irkernel)";
    }
    void configure(InterpreterOptions& options) override { options.languages = {"r"}; }

    Answer r(std::string_view code, json::object more = {}) {
        more["language"] = "R";
        return execute(code, std::move(more));
    }
};

TEST_F(RTest, CellsOfEveryKind) {
    EXPECT_EQ(r("print(\"Hello, World!\")").out(), "[1] \"Hello, World!\"\n");
    Answer first = r("x <- 20");
    EXPECT_EQ(first.of("result").size(), 0u);
    EXPECT_EQ(first.of("number_of_executions")[0].at("execution_count").as_int64(), 2);
    EXPECT_EQ(first_text(r("x + 22")), "[1] 42");
    EXPECT_EQ(first_text(r("getwd()")), "[1] \"" + run_dir.string() + "\"");
    EXPECT_THAT(r("message('to stderr')").text("stderr"), testing::StartsWith("to stderr\n"));
    Answer failed = r("stop('broken')");
    EXPECT_EQ(failed.of("error").size(), 1u);
    EXPECT_THAT(error_value(failed), HasSubstr("broken"));
    EXPECT_EQ(r("x <- ").of("error").size(), 1u);

    const json::object env{{"env_vars", json::object{{"FOO", "it's \"b\" \xC3\xA4\n"}}}};
    EXPECT_EQ(r("cat(Sys.getenv('FOO'))", env).out(), "it's \"b\" \xC3\xA4\n");
    EXPECT_EQ(first_text(r("Sys.getenv('FOO', unset = 'default')")), "[1] \"default\"");
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"TEAM":"red"})"));
    EXPECT_EQ(first_text(r("Sys.getenv('TEAM')")), "[1] \"red\"");

    r("set.seed(1); known <- runif(1); set.seed(1)");
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "1"));
    EXPECT_EQ(first_text(r("runif(1) == known")), "[1] FALSE");
}

TEST_F(RTest, TablesAndPlots) {
    Answer table = r("data.frame(a = 1:2, b = c('x', 'y'))");
    ASSERT_EQ(table.of("result").size(), 1u);
    EXPECT_THAT(std::string(table.of("result")[0].at("html").as_string()), HasSubstr("<td>x</td>"));
    Answer plot = r("plot(1:10)");
    ASSERT_EQ(plot.of("result").size(), 1u);
    EXPECT_TRUE(std::string_view(plot.of("result")[0].at("png").as_string()).starts_with("iVBORw0KGgo"));
}

TEST_F(RTest, InterruptsAndEnds) {
    r("x <- 20");
    for (const char* code : {"repeat {}", "Sys.sleep(100)", "system('sleep 100')"}) {
        execute_and_leave(code, 500ms, "r");
        EXPECT_EQ(first_text(r("x")), "[1] 20") << code;
    }
    r("quit(save = 'no', status = 3)");
    EXPECT_EQ(first_text(r("1 + 1")), "[1] 2");
    EXPECT_EQ(r("tools::pskill(Sys.getpid(), 9); Sys.sleep(9)").error(), "ContextRestarting");
    EXPECT_EQ(first_text(r("exists('x')")), "[1] FALSE");
}

}  // namespace
}  // namespace gb::interpreter
