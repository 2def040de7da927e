// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <fmt/format.h>

#include "base/error_table.h"
#include "base/version.h"
#include "cli/commands.h"

namespace gb::cli {

int complain(const Error& error) {
    fmt::print(stderr, "glovebox: {}\n", error.message);
    return exit_code(error.code);
}

}  // namespace gb::cli

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    CLI::App app("Glovebox: machines for code that no person has read");
    app.set_version_flag("--version", fmt::format("glovebox {}", gb::version()));
    app.require_subcommand(1);
    app.get_formatter()->column_width(36);
    gb::cli::Action run;
    gb::cli::add_serve(app, run);
    gb::cli::add_env(app, run);
    gb::cli::add_template(app, run);
    gb::cli::add_sandbox(app, run);
    gb::cli::add_snapshot(app, run);
    gb::cli::add_job(app, run);
    gb::cli::add_operator(app, run);
    gb::cli::add_events(app, run);
    gb::cli::add_prove(app, run);
    gb::cli::add_demo(app, run);
    gb::cli::add_doctor(app, run);
    gb::cli::add_reclaim(app, run);
    gb::cli::add_describe(app, run);
    CLI11_PARSE(app, argc, argv);
    return run ? run() : 2;
}
