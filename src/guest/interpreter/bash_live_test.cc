// SPDX-License-Identifier: Apache-2.0
// Bash contexts: the whole server with the Bash of this machine.
#include <algorithm>

#include <signal.h>

#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

class BashTest : public InterpreterTest {
  protected:
    std::string what_is_missing() override { return find_runtimes().bash.empty() ? "no bash" : ""; }
    void configure(InterpreterOptions& options) override { options.languages = {"bash"}; }

    Answer bash(std::string_view code, json::object more = {}) {
        more["language"] = "bash";
        return execute(code, std::move(more));
    }
};

TEST_F(BashTest, OutputStateAndCount) {
    Answer first = bash("x=20; echo out; echo err >&2");
    EXPECT_EQ(first.out(), "out\n");
    EXPECT_EQ(first.text("stderr"), "err\n");
    EXPECT_EQ(first.of("number_of_executions")[0].at("execution_count").as_int64(), 1);
    Answer second = bash("f() { echo $((x + $1)); }; f 22");
    EXPECT_EQ(second.out(), "42\n");
    EXPECT_EQ(second.of("number_of_executions")[0].at("execution_count").as_int64(), 2);
    EXPECT_EQ(second.error(), "(none)");
}

TEST_F(BashTest, NothingIsSaidThatTheCodeDidNotSay) {
    for (int i = 0; i < 3; ++i) {
        Answer silent = bash("true");
        EXPECT_EQ(silent.out() + silent.text("stderr"), "");
        EXPECT_EQ(silent.error(), "(none)");
    }
}

TEST_F(BashTest, StartsInItsFolder) {
    EXPECT_EQ(bash("pwd").out(), run_dir.string() + "\n");
    bash("cd /");
    EXPECT_EQ(bash("pwd").out(), "/\n");
}

TEST_F(BashTest, StatusIsTheError) {
    Answer failed = bash("echo before; (exit 3)");
    EXPECT_EQ(failed.out(), "before\n");
    EXPECT_EQ(failed.error(), "ExitCode");
    EXPECT_EQ(error_value(failed), "3");
    EXPECT_EQ(bash("echo $?").out(), "3\n");
    Answer missing = bash("no-such-program-anywhere");
    EXPECT_EQ(error_value(missing), "127");
    EXPECT_THAT(missing.text("stderr"), HasSubstr("no-such-program-anywhere: command not found"));
}

TEST_F(BashTest, SyntaxErrorsLeaveTheShellAlive) {
    for (const char* code : {"if true", "echo 'open", "for", "cat <<END\nnever closed", "}", "echo $((1+"}) {
        Answer answer = bash(code);
        EXPECT_TRUE(answer.error() == "ExitCode" || code == std::string_view("cat <<END\nnever closed"))
            << code;
    }
    EXPECT_EQ(bash("echo alive").out(), "alive\n");
}

TEST_F(BashTest, ManyLinesHeredocsAndSubshells) {
    EXPECT_EQ(bash("cat <<'END'\n$HOME \"quoted\"\nEND\nfor i in 1 2 3; do\n  echo $i\ndone | tac\n").out(),
              "$HOME \"quoted\"\n3\n2\n1\n");
    EXPECT_EQ(bash("# only a comment").error(), "(none)");
    EXPECT_EQ(bash("").error(), "(none)");
    EXPECT_EQ(bash("printf 'no newline'").out(), "no newline");
    EXPECT_EQ(bash("echo \xE2\x82\xAC; printf '\\xff'").out(), "\xE2\x82\xAC\n\xEF\xBF\xBD");
}

TEST_F(BashTest, StandardInputIsEmptyAndTheServersPipesAreHidden) {
    EXPECT_EQ(bash("cat; read -r x; echo \"[$x]\"").out(), "[]\n");
    EXPECT_EQ(bash("sh -c 'echo said >&4' 2>/dev/null || echo closed").out(), "closed\n");
    EXPECT_EQ(bash("exec 4>&- 3>&- 0</dev/null; echo still").out(), "still\n");
    EXPECT_EQ(bash("echo here").out(), "here\n");
}

TEST_F(BashTest, CallEnvIsSetThenTakenBack) {
    EXPECT_EQ(bash("echo $FOO", {{"env_vars", json::object{{"FOO", "it's \"bar\"\n$x"}}}}).out(),
              "it's \"bar\" $x\n");
    EXPECT_EQ(bash("echo ${FOO:-default}").out(), "default\n");
    bash("export KEPT=mine");
    EXPECT_EQ(bash("printenv KEPT", {{"env_vars", json::object{{"KEPT", "lent"}}}}).out(), "lent\n");
    EXPECT_EQ(bash("printenv KEPT").out(), "mine\n");
    EXPECT_EQ(
        bash("echo ok", {{"env_vars", json::object{{"not a name", "x"}, {"UID", "7"}, {"name", "n"}}}}).out(),
        "ok\n");
    EXPECT_EQ(bash("echo $name", {{"env_vars", json::object{{"name", "n"}, {"status", "s"}}}}).out(), "n\n");
}

TEST_F(BashTest, SandboxEnvFollowsTheFile) {
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", R"({"TEAM":"red"})"));
    EXPECT_EQ(bash("echo $TEAM").out(), "red\n");
    EXPECT_EQ(bash("echo $TEAM", {{"env_vars", json::object{{"TEAM", "blue"}}}}).out(), "blue\n");
    EXPECT_EQ(bash("echo $TEAM").out(), "red\n");
    ASSERT_TRUE(write_file_atomic(run_dir / "envs.json", "{}"));
    EXPECT_EQ(bash("echo ${TEAM-gone}").out(), "gone\n");
}

TEST_F(BashTest, NewGenerationSeeds) {
    bash("RANDOM=1");
    const std::string known = bash("echo $RANDOM $RANDOM").out();
    bash("RANDOM=1");
    ASSERT_TRUE(write_file_atomic(run_dir / "generation", "1"));
    EXPECT_NE(bash("echo $RANDOM $RANDOM").out(), known);
}

TEST_F(BashTest, SettingsOfTheCodeDoNotBreakTheKernel) {
    EXPECT_EQ(bash("PS1='prompt> ' PROMPT_COMMAND='echo noise' ; set -u; shopt -s extglob; echo a").out(),
              "a\n");
    EXPECT_EQ(bash("echo b").out(), "b\n");
    EXPECT_EQ(bash("echo b").text("stderr"), "");
    EXPECT_EQ(bash("alias eval=false; unset -f nothing; echo c").out(), "c\n");
    EXPECT_EQ(bash("IFS=:; set -- x y; echo \"$*\"").out(), "x:y\n");
    EXPECT_EQ(bash("echo d").out(), "d\n");
    EXPECT_EQ(bash("trap 'echo trapped' INT DEBUG; echo e; trap - INT DEBUG").out(), "trapped\ne\ntrapped\n");
    EXPECT_EQ(bash("echo f").out(), "f\n");
}

TEST_F(BashTest, ExitEndsTheCellAndForgets) {
    bash("x=1");
    Answer good = bash("echo bye; exit 0; echo never");
    EXPECT_EQ(good.out(), "bye\n");
    EXPECT_EQ(good.error(), "(none)");
    EXPECT_THAT(good.text("stderr"), HasSubstr("started again"));
    EXPECT_EQ(bash("echo ${x-gone}").out(), "gone\n");
    Answer bad = bash("set -e\nfalse\necho never");
    EXPECT_EQ(bad.error(), "ExitCode");
    EXPECT_EQ(error_value(bad), "1");
    EXPECT_EQ(bash("echo alive").out(), "alive\n");
}

TEST_F(BashTest, KilledShellIsAnErrorAndStartsAgain) {
    Answer killed = bash("kill -9 $$");
    EXPECT_EQ(killed.error(), "ContextRestarting");
    EXPECT_EQ(bash("echo alive").out(), "alive\n");
}

TEST_F(BashTest, DisconnectInterrupts) {
    for (const char* code :
         {"x=here; while true; do :; done", "sleep 100", "cat <(sleep 100)", "sleep 100 | sleep 100",
          "eval 'while sleep 0.01; do true; done'", "(trap '' INT; sleep 0.3); sleep 100"}) {
        execute_and_leave(code, 400ms, "bash");
        const auto before = std::chrono::steady_clock::now();
        EXPECT_EQ(bash("echo free").out(), "free\n") << code;
        EXPECT_LT(std::chrono::steady_clock::now() - before, 30s) << code;
    }
    EXPECT_EQ(bash("echo $x").out(), "here\n");  // it is the same shell
}

TEST_F(BashTest, DisconnectAtOnceLosesNoLine) {
    for (int i = 0; i < 20; ++i) {
        execute_and_leave("sleep 50", 0ms, "bash");
        EXPECT_EQ(bash("echo next").out(), "next\n");
    }
}

TEST_F(BashTest, BackgroundWorkOutlivesItsCell) {
    Answer answer = bash("sleep 30 & echo started $!");
    EXPECT_THAT(answer.out(), HasSubstr("started"));
    EXPECT_EQ(bash("kill %1 2>/dev/null || kill $!; echo killed").out(), "killed\n");
}

TEST_F(BashTest, MuchOutputArrivesWhole) {
    Answer answer = bash("head -c 20000000 /dev/zero | tr '\\0' x; echo end >&2");
    EXPECT_EQ(answer.out().size(), 20'000'000u);
    EXPECT_EQ(answer.text("stderr"), "end\n");
}

TEST_F(BashTest, LongCodeIsQuick) {
    std::string code;
    for (int i = 0; i < 50'000; ++i) code += "x" + std::to_string(i) + "=1\n";
    EXPECT_EQ(bash(code + "echo $((x0 + x49999))").out(), "2\n");
}

class SpareTest : public BashTest {
  protected:
    std::string what_is_missing() override {
        return BashTest::what_is_missing() + InterpreterTest::what_is_missing();
    }
    void configure(InterpreterOptions& options) override {
        options.languages = {"python"};
        options.spares = {"bash", "cobol"};
    }
    std::string listed() {
        std::string all;
        for (const json::value& context : json::parse(request("GET", "/contexts").body).as_array())
            all += std::string(context.at("language").as_string()) + " ";
        return all;
    }
    // Kernels of this server by pid, with their oom_score_adj.
    std::vector<std::string> scores() {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(run_dir / "kernels")) {
            const std::string pid = read_file(entry.path() / "pid").value_or("");
            found.push_back(
                read_file("/proc/" + pid.substr(0, pid.find(' ')) + "/oom_score_adj").value_or(""));
        }
        std::ranges::sort(found);
        return found;
    }
};

TEST_F(SpareTest, WaitsUnseenAndGoesFirst) {
    EXPECT_EQ(listed(), "python ");
    EXPECT_THAT(scores(), ElementsAre("1000\n", "300\n"));
    EXPECT_EQ(bash("echo $((20 + 22))").out(), "42\n");
    EXPECT_EQ(listed(), "python bash ");
    EXPECT_THAT(scores(), ElementsAre("300\n", "300\n"));
}

TEST_F(SpareTest, ANewContextTakesItToo) {
    const std::string id = new_context(R"({"language":"bash"})");
    EXPECT_THAT(scores(), ElementsAre("300\n", "300\n"));
    EXPECT_EQ(listed(), "python bash ");
    execute("x=1", {{"context_id", id}});
    EXPECT_EQ(bash("echo ${x-another}").out(), "another\n");
    EXPECT_EQ(listed(), "python bash bash ");
}

TEST_F(SpareTest, ThatIsGoneIsStartedAgainOnlyForWhoAsks) {
    for (const auto& entry : std::filesystem::directory_iterator(run_dir / "kernels")) {
        const pid_t pid = static_cast<pid_t>(std::stol(read_file(entry.path() / "pid").value_or("0")));
        const std::string name = read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
        if (name == "bash\n") {
            ASSERT_EQ(::kill(pid, SIGKILL), 0);
        }
    }
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ(scores().size(), 1u);
    EXPECT_TRUE(healthy());
    EXPECT_EQ(bash("echo here").out(), "here\n");
}

}  // namespace
}  // namespace gb::interpreter
