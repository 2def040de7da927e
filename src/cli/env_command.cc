// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/commands.h"
#include "cli/paths.h"

namespace gb::cli {

void add_env(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand("env", "Print the variables that point the E2B clients at the local server");
    auto options = std::make_shared<NodeOptions>(default_node_options());
    add_data_dir(*command, *options);
    command->footer("Use it as: eval \"$(glovebox env)\"");
    command->callback([&run, options] {
        run = [options] {
            auto server = find_local_server(*options);
            if (!server) return complain(server.error());
            fmt::print("export E2B_API_KEY={}\nexport E2B_API_URL={}\nexport E2B_SANDBOX_URL={}\n", server->key,
                       server->url, server->url);
            return 0;
        };
    });
}

}  // namespace gb::cli
