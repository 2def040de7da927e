// SPDX-License-Identifier: Apache-2.0
// A small program with one of each: what the tests of the manual and of completion describe.
#pragma once

#include "cli/command_tree.h"

namespace gb::cli {

inline CommandText described_example() {
    CLI::App app("Does it");
    app.set_version_flag("--version", "1");
    CLI::App* serve = app.add_subcommand("serve", "Run -- it's \\here");
    static int port = 3000;
    static std::string level = "info", name, secret;
    static std::vector<std::string> names;
    static bool json = false;
    serve->add_option("-p,--port", port, "A port")->capture_default_str();
    serve->add_option("--level", level, "How much")->check(CLI::IsMember({"debug", "info"}));
    static int stop = 0;
    serve->add_option("--on-stop", stop, "What then")
        ->transform(CLI::CheckedTransformer(std::map<std::string, int>{{"keep", 0}, {"end", 1}}));
    serve->add_option("--hidden", secret, "Nobody's business")->group("");
    CLI::App* group = app.add_subcommand("box", "Boxes");
    CLI::App* kill = group->add_subcommand("kill", "End some");
    kill->add_option("names", names, "Which")->required();
    kill->add_flag("--json", json, "As JSON");
    app.add_subcommand("internal", "Hidden")->group("");
    return command_tree(app, "tool");
}

}  // namespace gb::cli
