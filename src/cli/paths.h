// Where the program finds its things, and the options that say otherwise.
#pragma once

#include <filesystem>

#include <CLI/CLI.hpp>

#include "node/machinery.h"

namespace gb::cli {

// The options with their defaults: environment (GLOVEBOX_DATA_DIR, GLOVEBOX_CACHE_DIR,
// GLOVEBOX_TEMPLATES_DIR), then beside the program, then
// the system's places.
NodeOptions default_node_options();
// The folder of the examples, beside the program or in the system's place.
std::filesystem::path examples_dir();
void add_data_dir(CLI::App& command, NodeOptions& options);
void add_templates_dir(CLI::App& command, NodeOptions& options);
void add_node_dirs(CLI::App& command, NodeOptions& options);

std::filesystem::path key_file(const NodeOptions& options);     // the default key, 0600
std::filesystem::path admin_token_file(const NodeOptions& options);  // the operator's, 0600
std::filesystem::path server_file(const NodeOptions& options);  // where a running server answers

}  // namespace gb::cli
