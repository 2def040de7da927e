// SPDX-License-Identifier: Apache-2.0
// The commands of the glovebox program. Each adds itself to the parser and sets `run` to what shall be done; its result
// is the exit code of the program.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace gb::cli {

using Action = std::function<int()>;

inline constexpr int kInterrupted = 130;  // the exit code as a shell says it: 128 and SIGINT

void add_serve(CLI::App& app, Action& run);
void add_env(CLI::App& app, Action& run);
void add_template(CLI::App& app, Action& run);
void add_sandbox(CLI::App& app, Action& run);
void add_snapshot(CLI::App& app, Action& run);
void add_job(CLI::App& app, Action& run);
void add_operator(CLI::App& app, Action& run);  // team, key, usage, disk, plan, node
void add_events(CLI::App& app, Action& run);    // event, webhook
void add_demo(CLI::App& app, Action& run);
void add_doctor(CLI::App& app, Action& run);
void add_prove(CLI::App& app, Action& run);
void add_reclaim(CLI::App& app, Action& run);
void add_describe(CLI::App& app, Action& run);  // completion, manual; the last, it tells of all others

// One line on standard error; the exit code that belongs to the error.
int complain(const Error& error);

}  // namespace gb::cli
