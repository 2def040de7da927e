// SPDX-License-Identifier: Apache-2.0
// A template definition: what a kind of sandbox is made of, read from `<images>/<name>/template.toml` and the
// files beside it.
//
//   template.toml   the fields below; unknown ones are errors
//   setup           optional script, run as root inside the new root file system after packages and files
//   files/          optional tree, copied over the root file system as root's, mode 0644 or 0755
//   npm/            optional package.json and package-lock.json, installed to /usr/local/lib/node_modules before setup
//
// `extends = "base"` starts from another definition of the same folder: packages and env are added to the
// parent's, other fields replace them, and the parent's files and setup come first.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::image {

// One definition's share of the root file system.
struct Layer {
    std::string name;
    std::filesystem::path setup;  // empty: none
    std::filesystem::path files;  // empty: none
    std::filesystem::path npm;    // empty: none
};

struct TemplateDefinition {
    std::string name;
    std::string description;
    std::vector<std::string> packages;  // Debian packages, sorted, each once, with the parents'
    std::vector<Layer> layers;          // parents first
    int cpu_count = 1;
    int memory_mib = 512;
    int disk_mib = 4096;
    std::string start_cmd;  // run by the agent when a machine of the template first starts; empty: none
    std::string ready_cmd;  // ends with 0 once start_cmd is ready to be frozen; empty: at once
    // So long nothing may move until it does: no output, no use of a processor (base/stall.h). Not a limit of the whole.
    // Written as "10m" or as seconds.
    std::chrono::milliseconds ready_timeout = std::chrono::minutes(10);
    std::string default_user = "user";
    std::string workdir = "/home/user";
    std::map<std::string, std::string> env;
};

// Small letters, digits and '-', at most 63; no '-' in front.
bool is_definition_name(std::string_view name);

// invalid_argument names the file, the line and the field; not_found when there is no such definition.
Result<TemplateDefinition> load_definition(const std::filesystem::path& images, std::string_view name);

// Names of the definitions in a folder, sorted.
Result<std::vector<std::string>> list_definitions(const std::filesystem::path& images);

}  // namespace gb::image
