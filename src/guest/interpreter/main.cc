// SPDX-License-Identifier: Apache-2.0
// glovebox-interpreter: the code-interpreter server inside a sandbox (contract 4).
#include <chrono>
#include <string>
#include <vector>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "guest/interpreter/interpreter.h"
#include "guest/interpreter/supervisor.h"

namespace {

struct Flags {
    std::uint16_t port = 49999;
    std::string listen = "0.0.0.0";
    bool no_supervise = false;
    bool after_crash = false;
    gb::interpreter::InterpreterOptions interpreter;
};

constexpr std::chrono::seconds kStopLimit{3};  // a kernel that is just starting is not waited for

int serve(const Flags& flags) {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_NAME, "glovebox-interpreter");  // started as /proc/self/exe it would be called `exe`
    boost::asio::io_context io(1);
    gb::interpreter::Interpreter interpreter(io, flags.interpreter);
    auto where = interpreter.start(flags.listen, flags.port);
    if (!where) {
        gb::log::error("cannot serve", {{"error", where.error().message}});
        return 1;
    }
    gb::log::info("listening", {{"address", where->address().to_string()}, {"port", where->port()}});

    bool stopping = false;
    boost::asio::signal_set signals(io, SIGTERM, SIGINT);
    signals.async_wait([&](const boost::system::error_code&, int) { stopping = true; });
    while (!stopping) io.run_one();
    interpreter.stop();
    io.run_for(kStopLimit);
    if (io.stopped()) return 0;
    gb::interpreter::sweep_kernels(flags.interpreter.run_dir);
    ::_exit(0);  // destructors would wait for what has just been given up
}

}  // namespace

int main(int argc, char** argv) {
    Flags flags;
    CLI::App app{"Runs code in stateful kernels, for the code-interpreter clients"};
    app.add_option("--port", flags.port, "TCP port")->capture_default_str();
    app.add_option("--listen", flags.listen, "IP address")->capture_default_str();
    app.add_option("--run-dir", flags.interpreter.run_dir,
                   "Folder of sockets, and of what the agent tells us")
        ->capture_default_str();
    app.add_option("--cwd", flags.interpreter.cwd, "Working directory of contexts that name none")
        ->capture_default_str();
    app.add_option("--languages", flags.interpreter.languages,
                   "Languages whose default context is ready before /health says OK")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--spares", flags.interpreter.spares,
                   "Languages whose kernel waits unseen for its first use; not after a crash of the server")
        ->delimiter(',');
    app.add_flag("--after-crash", flags.after_crash, "Started again by the supervisor: be ready soon");
    app.add_option("--python", flags.interpreter.runtimes.python, "Python that has ipykernel")
        ->capture_default_str();
    app.add_option("--preload", flags.interpreter.preload, "Python modules to import before /health says OK")
        ->delimiter(',');
    app.add_flag("--no-supervise", flags.no_supervise, "Serve in this process; do not restart after a crash");
    CLI11_PARSE(app, argc, argv);
    if (flags.after_crash) {
        flags.interpreter.spares.clear();
        flags.interpreter.zygote_first = false;
    }
    if (flags.no_supervise) return serve(flags);
    std::vector<std::string> child(argv, argv + argc);
    child.emplace_back("--no-supervise");
    return gb::interpreter::supervise(std::move(child), "--after-crash");
}
