// SPDX-License-Identifier: Apache-2.0
#include "cli/paths.h"

#include <cstdlib>

namespace gb::cli {
namespace fs = std::filesystem;
namespace {

fs::path first_that_exists(std::initializer_list<fs::path> places) {
    std::error_code ec;
    for (const fs::path& place : places)
        if (fs::exists(place, ec)) return place;
    return *std::prev(places.end());
}

fs::path from_env(const char* name, fs::path otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? fs::path(value) : std::move(otherwise);
}

fs::path program() {
    std::error_code ec;
    return fs::read_symlink("/proc/self/exe", ec);
}

}  // namespace

OwnFolders own_folders(const fs::path& program) {
    const fs::path here = program.parent_path();
    const fs::path prefix = here.parent_path();
    return {.images = first_that_exists({here / "images", prefix / "share/glovebox/images", "/usr/share/glovebox/images"}),
            .guest = first_that_exists({here / "guest", prefix / "lib/glovebox/guest", "/usr/lib/glovebox/guest"}),
            .examples = first_that_exists({here / "examples", prefix / "share/glovebox/examples", "/usr/share/glovebox/examples"})};
}

NodeOptions default_node_options() {
    const OwnFolders own = own_folders(program());
    NodeOptions out;
    out.data_dir = from_env("GLOVEBOX_DATA_DIR", out.data_dir);
    out.cache_dir = from_env("GLOVEBOX_CACHE_DIR", out.cache_dir);
    out.templates_dir = from_env("GLOVEBOX_TEMPLATES_DIR", out.templates_dir);
    out.images_dir = own.images;
    out.guest_dir = own.guest;
    return out;
}

fs::path examples_dir() {
    return own_folders(program()).examples;
}

void add_data_dir(CLI::App& command, NodeOptions& options) {
    command.add_option("--data-dir", options.data_dir, "Folder of templates, sandboxes and the store")
        ->capture_default_str();
}

void add_templates_dir(CLI::App& command, NodeOptions& options) {
    command.add_option("--templates-dir", options.templates_dir,
                       "Folder of the captured templates, which several servers may share  [<data-dir>/templates]");
}

void add_node_dirs(CLI::App& command, NodeOptions& options) {
    add_data_dir(command, options);
    command.add_option("--cache-dir", options.cache_dir, "Folder of what can be built or downloaded again")
        ->capture_default_str();
    add_templates_dir(command, options);
    command.add_option("--images-dir", options.images_dir, "Folder of the template definitions")->capture_default_str();
    command.add_option("--guest-dir", options.guest_dir, "Folder of the programs that run inside a sandbox")
        ->capture_default_str();
}

std::string called_as(const fs::path& program, std::string_view search_path) {
    std::error_code ec;
    while (!search_path.empty()) {
        const std::string_view folder = search_path.substr(0, search_path.find(':'));
        search_path.remove_prefix(std::min(search_path.size(), folder.size() + 1));
        const fs::path there = fs::path(folder) / program.filename();
        if (!fs::exists(there, ec)) continue;
        return fs::equivalent(there, program, ec) ? program.filename().string() : program.string();
    }
    return program.string();
}

std::string called_as() {
    const char* path = std::getenv("PATH");
    return called_as(program(), path == nullptr ? "" : path);
}

fs::path key_file(const NodeOptions& options) {
    return options.data_dir / "api-key";
}

fs::path admin_token_file(const NodeOptions& options) {
    return options.data_dir / "admin-token";
}

fs::path server_file(const NodeOptions& options) {
    return options.data_dir / "server.json";
}

}  // namespace gb::cli
