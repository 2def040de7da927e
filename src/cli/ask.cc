// SPDX-License-Identifier: Apache-2.0
#include "cli/ask.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include "http/message.h"

namespace gb::cli {

CLI::App* add_asking(CLI::App& group, const char* name, const char* help,
                     const std::shared_ptr<AskOptions>& options, Action& run, Action action) {
    CLI::App* command = group.add_subcommand(name, help);
    add_data_dir(*command, options->node);
    command->add_flag("--json", options->json, "As JSON");
    command->callback([&run, action = std::move(action), command, options] {
        options->data_dir_given = command->count("--data-dir") > 0;
        run = action;
    });
    return command;
}

std::string path_of(const char* format, const std::string& id) {
    return fmt::format(fmt::runtime(format), http::percent_encode(id));
}

Result<ServerAddress> server_of(const AskOptions& options) {
    return options.as_operator ? find_operator_server(options.node)
                               : find_server(options.node, options.data_dir_given);
}

int ask(const AskOptions& options, const std::string& method, const std::string& path, const Show& show,
        const std::string& body) {
    auto server = server_of(options);
    if (!server) return complain(server.error());
    auto answer = call_api(*server, method, path, body);
    if (!answer) return complain(answer.error());
    fmt::print("{}", options.json ? boost::json::serialize(*answer) + "\n" : show(*answer));
    return 0;
}

}  // namespace gb::cli
