// SPDX-License-Identifier: Apache-2.0
// Python kernels that are forked from a zygote: the whole server with a real ipykernel.
#include <signal.h>

#include "guest/interpreter/interpreter_fixture.h"

namespace gb::interpreter {
namespace {

class ZygoteTest : public InterpreterTest {
  protected:
    void configure(InterpreterOptions& options) override {
        // A package of the test's own, and one of the standard library that no kernel imports.
        ASSERT_TRUE(make_dirs(run_dir / "site/ours"));
        ASSERT_TRUE(write_file_atomic(run_dir / "site/ours/__init__.py", "version = 1\n"));
        ::setenv("PYTHONPATH", (run_dir / "site").c_str(),
                 1);  // NOLINT(concurrency-mt-unsafe): no thread yet
        options.preload = {"ours", "calendar"};
    }
    void TearDown() override {
        InterpreterTest::TearDown();
        ::unsetenv("PYTHONPATH");  // NOLINT(concurrency-mt-unsafe): no thread any more
    }

    std::string in(const std::string& context, std::string_view code) {
        return execute(code, {{"context_id", context}}).main_result();
    }
    pid_t parent_of(const std::string& context) {
        return static_cast<pid_t>(std::stol(in(context, "__import__('os').getppid()")));
    }
};

constexpr std::string_view kIsImported = "'ours' in __import__('sys').modules";

TEST_F(ZygoteTest, KernelsAreForkedWithWhatItImported) {
    const std::string one = new_context(), two = new_context(R"({"cwd":"/"})");
    EXPECT_EQ(in(one, kIsImported), "True");
    EXPECT_EQ(parent_of(one), parent_of(two));
    EXPECT_NE(parent_of(one), ::getpid());
    EXPECT_EQ(execute(kIsImported).main_result(), "True");
    EXPECT_EQ(in(one, "'ours' in globals()"), "False");  // imported, not bound
    EXPECT_EQ(in(two, "__import__('os').getcwd()"), "/");
    EXPECT_EQ(in(one, "__import__('sys').path[0]"), "");
    EXPECT_EQ(in(one, "__name__"), "__main__");
    // Each is on its own: state, count, random numbers.
    in(one, "x = 1");
    EXPECT_EQ(execute("x", {{"context_id", two}}).error(), "NameError");
    EXPECT_NE(in(one, "__import__('random').random()"), in(two, "__import__('random').random()"));
    EXPECT_NE(in(one, "__import__('numpy').random.rand()"), in(two, "__import__('numpy').random.rand()"));
}

TEST_F(ZygoteTest, FiguresAndInterruptsAreThoseOfAnyKernel) {
    Answer figure = execute("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('a')");
    ASSERT_EQ(figure.of("result").size(), 2u);
    EXPECT_TRUE(figure.of("result")[1].contains("chart"));
    execute("kept = 1");
    execute_and_leave("import time; time.sleep(100)", 300ms);
    EXPECT_EQ(execute("kept").main_result(), "1");
}

TEST_F(ZygoteTest, TheEndOfAKernelIsKnown) {
    const std::string one = new_context();
    Answer killed = execute("import os; os.kill(os.getpid(), 9)", {{"context_id", one}});
    EXPECT_EQ(killed.error(), "ContextRestarting");
    EXPECT_THAT(error_value(killed), HasSubstr("was killed by signal 9"));
    Answer left = execute("os = __import__('os'); os._exit(7)", {{"context_id", one}});
    EXPECT_THAT(error_value(left), HasSubstr("exited with code 7"));
    EXPECT_EQ(in(one, kIsImported), "True");
}

TEST_F(ZygoteTest, ChangedPackagesAreSeenByNewKernels) {
    EXPECT_EQ(in(new_context(), "__import__('ours').version"), "1");
    (void)remove_tree(run_dir / "site/ours");  // as an installer replaces a package
    ASSERT_TRUE(make_dirs(run_dir / "site/ours"));
    ASSERT_TRUE(write_file_atomic(run_dir / "site/ours/__init__.py", "version = 2\n"));
    const std::string fresh = new_context();
    EXPECT_EQ(in(fresh, "__import__('ours').version"), "2");
    EXPECT_EQ(parent_of(fresh), ::getpid());
}

TEST_F(ZygoteTest, WithoutItKernelsStartFromNothing) {
    const std::string one = new_context();
    ASSERT_EQ(::kill(parent_of(one), SIGKILL), 0);
    EXPECT_EQ(in(one, "1 + 1"), "2");  // its kernels live on
    const std::string two = new_context();
    EXPECT_EQ(parent_of(two), ::getpid());
    EXPECT_EQ(request("POST", "/contexts/" + one + "/restart").head.status, 200);
    EXPECT_EQ(in(one, "1 + 1"), "2");
}

TEST_F(ZygoteTest, TenAtOnce) {
    std::vector<std::future<std::string>> making;
    for (int i = 0; i < 10; ++i)
        making.push_back(std::async(std::launch::async, [this] { return new_context(); }));
    std::vector<std::string> ids;
    for (auto& one : making) ids.push_back(one.get());
    for (std::size_t i = 0; i < ids.size(); ++i) in(ids[i], "mine = " + std::to_string(i));
    for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(in(ids[i], "mine"), std::to_string(i));
}

}  // namespace
}  // namespace gb::interpreter
