// SPDX-License-Identifier: Apache-2.0
// Where the program finds its things, and the options that say otherwise.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "node/machinery.h"

namespace gb::cli {

// What came with the program: beside it where it was built, else in the folders of the prefix that it is installed in,
// else in the system's.
struct OwnFolders {
    std::filesystem::path images;  // template definitions
    std::filesystem::path guest;   // programs for the inside of a sandbox
    std::filesystem::path examples;
};
OwnFolders own_folders(const std::filesystem::path& program);

// The options with their defaults: environment (GLOVEBOX_DATA_DIR, GLOVEBOX_CACHE_DIR,
// GLOVEBOX_TEMPLATES_DIR), then the program's own folders.
NodeOptions default_node_options();
std::filesystem::path examples_dir();
void add_data_dir(CLI::App& command, NodeOptions& options);
void add_templates_dir(CLI::App& command, NodeOptions& options);
void add_node_dirs(CLI::App& command, NodeOptions& options);

// What a shell must be told to run this program: its name where PATH leads to it, else its whole path.
std::string called_as(const std::filesystem::path& program, std::string_view search_path);
std::string called_as();

std::filesystem::path key_file(const NodeOptions& options);     // the default key, 0600
std::filesystem::path admin_token_file(const NodeOptions& options);  // the operator's, 0600
std::filesystem::path server_file(const NodeOptions& options);  // where a running server answers

}  // namespace gb::cli
