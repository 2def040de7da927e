// SPDX-License-Identifier: Apache-2.0
// What the commands that speak to a server share: their options, and printing the answer as JSON or for
// people.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/json/value.hpp>

#include "cli/api_client.h"
#include "cli/commands.h"
#include "cli/paths.h"

namespace gb::cli {

struct AskOptions {
    NodeOptions node = default_node_options();
    bool data_dir_given = false;
    bool json = false;
    bool as_operator = false;  // with the admin token, not with an API key
};

// Adds a command below `group` with --data-dir and --json; the caller adds what it needs beside.
CLI::App* add_asking(CLI::App& group, const char* name, const char* help,
                     const std::shared_ptr<AskOptions>& options, Action& run, Action action);

// "/sandboxes/{}" with the id in it, encoded.
std::string path_of(const char* format, const std::string& id);

Result<ServerAddress> server_of(const AskOptions& options);

using Show = std::function<std::string(const boost::json::value& answer)>;
// Calls the server and prints its answer. The exit code of the program.
int ask(const AskOptions& options, const std::string& method, const std::string& path, const Show& show,
        const std::string& body = "");

}  // namespace gb::cli
