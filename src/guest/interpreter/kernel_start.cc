// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/kernel_start.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "guest/interpreter/bash_codec.h"
#include "guest/interpreter/json_codec.h"
#include "guest/interpreter/jupyter_kernel.h"
#include "guest/interpreter/piped_kernel.h"
#include "guest/interpreter/python_zygote.h"

namespace gb::interpreter {
namespace {

namespace fs = std::filesystem;

using Started = Result<std::unique_ptr<Kernel>>;

constexpr std::string_view kJavaFlags[] = {
    // Little memory, given back, and ready soon.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xms64m",
    "-Xmn24m",
    "-Xmx384m",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:-ShrinkHeapInSteps",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    // So that System.getenv, random numbers and exit codes can be those of this sandbox.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.provider=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.loader=ALL-UNNAMED",
    "--add-opens=jdk.random/jdk.random=ALL-UNNAMED",
    "--add-opens=jdk.jshell/jdk.jshell=ALL-UNNAMED",
};

// Compiled where it is used, once: into a folder of its own first, for others may be at it too.
constexpr std::string_view kRunJava = R"(set -e
if [ ! -d "$1/java-classes" ]; then
    "$2" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -nowarn -proc:none -XDignore.symbol.file -d "$1/java-classes.$$" "$1"/java/*.java
    mv -T "$1/java-classes.$$" "$1/java-classes" || rm -rf "$1/java-classes.$$"
fi
classes=$1/java-classes java=$3
shift 3
exec "$java" "$@" -cp "$classes" glovebox.Kernel)";

// Writes the connection file, too.
Result<Connection> prepare_connection(const KernelCommand& command) {
    Connection connection{.folder = command.folder.string(), .key = random_hex(32)};
    GB_TRY(write_file_atomic(command.folder / kConnectionFile, connection_file(connection), 0600));
    return connection;
}

awaitable<Started> start_python(const KernelOptions& options, KernelCommand command,
                                KernelSurroundings around) {
    GB_CO_TRY_ASSIGN(Connection connection, prepare_connection(command));
    Result<std::unique_ptr<KernelProcess>> process = fail(ErrorCode::unavailable, "no zygote");
    if (around.zygote && around.zygote->ready()) {
        process = co_await around.zygote->fork(command);
        if (!process) log::info("a kernel from nothing", {{"why", process.error().message}});
    }
    if (!process) {
        command.env = {"PYDEVD_DISABLE_FILE_VALIDATION=1"};
        command.argv = {options.runtimes.python,
                        "-m",
                        "ipykernel_launcher",
                        "-f",
                        (command.folder / kConnectionFile).string(),
                        "--config=" + (options.scripts / "ipython_kernel_config.py").string()};
        process = KernelProcess::spawn(command);
    }
    if (!process) co_return std::unexpected(process.error());
    co_return co_await JupyterKernel::start(*std::move(process), connection, python_code,
                                            JupyterKernel::Output::waits, std::move(around));
}

awaitable<Started> start_r(const KernelOptions& options, KernelCommand command, KernelSurroundings around) {
    GB_CO_TRY_ASSIGN(Connection connection, prepare_connection(command));
    command.argv = {options.runtimes.r,
                    "--no-echo",
                    "--no-save",
                    "--no-restore",
                    "--file=" + (options.scripts / "glovebox.R").string(),
                    "--args",
                    (command.folder / kConnectionFile).string()};
    GB_CO_TRY_ASSIGN(std::unique_ptr<KernelProcess> process, KernelProcess::spawn(command));
    co_return co_await JupyterKernel::start(std::move(process), connection, r_code,
                                            JupyterKernel::Output::dropped, std::move(around));
}

awaitable<Started> start_javascript(const KernelOptions& options, KernelCommand command,
                                    KernelSurroundings around) {
    command.env = {"GLOVEBOX_NODE_MODULES=" + options.runtimes.node_modules,
                   "GLOVEBOX_NODE_ENTROPY=" + options.runtimes.node_entropy};
    command.argv = {options.runtimes.node,
                    // Node.js would end itself when code that a timer runs is interrupted.
                    "--no-force-async-hooks-checks", "--experimental-import-meta-resolve",
                    "--disable-warning=ExperimentalWarning",
                    (options.scripts / "glovebox_kernel.mjs").string()};
    co_return co_await PipedKernel::start(std::move(command), {}, std::make_unique<JsonCodec>(),
                                          std::move(around));
}

awaitable<Started> start_java(const KernelOptions& options, KernelCommand command,
                              KernelSurroundings around) {
    command.env = {"LC_ALL=C.UTF-8"};  // elsewhere Java cannot open files with names beyond ASCII
    command.argv = {"/bin/sh",
                    "-c",
                    std::string(kRunJava),
                    "sh",
                    options.scripts.string(),
                    options.runtimes.javac,
                    options.runtimes.java};
    for (std::string_view flag : kJavaFlags) command.argv.emplace_back(flag);
    co_return co_await PipedKernel::start(
        std::move(command), {}, std::make_unique<JsonCodec>(JsonCodec::LineFeeds::apart), std::move(around));
}

awaitable<Started> start_bash(const KernelOptions& options, KernelCommand command,
                              KernelSurroundings around) {
    command.argv = {options.runtimes.bash,
                    "--noprofile",
                    "--noediting",
                    "--rcfile",
                    (options.scripts / "glovebox.bash").string(),
                    "-i"};
    auto codec = std::make_unique<BashCodec>(command.folder);
    co_return co_await PipedKernel::start(std::move(command), {.requests = 0, .answers = 4}, std::move(codec),
                                          std::move(around));
}

}  // namespace

Status KernelStartLimit::check() {
    if (watch_.moved()) limit_.moved();
    if (limit_.over()) return limit_.error("the kernel's start");
    return {};
}

awaitable<Started> start_kernel(KernelOptions options, KernelSurroundings around) {
    GB_CO_TRY(require_kernel_for(options.language, options.runtimes));
    KernelCommand command;
    GB_CO_TRY_ASSIGN(command.folder, make_kernel_folder(options.run_dir));
    command.cwd = options.cwd;
    if (options.language == "python")
        co_return co_await start_python(options, std::move(command), std::move(around));
    if (options.language == "r") co_return co_await start_r(options, std::move(command), std::move(around));
    if (options.language == "java")
        co_return co_await start_java(options, std::move(command), std::move(around));
    if (options.language == "bash")
        co_return co_await start_bash(options, std::move(command), std::move(around));
    co_return co_await start_javascript(options, std::move(command), std::move(around));
}

}  // namespace gb::interpreter
