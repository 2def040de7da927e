// SPDX-License-Identifier: Apache-2.0
// What the commands of the program are, read from its parser: the one source of --help, the manual pages and the shells'
// completion. What --help hides is not in it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace gb::cli {

struct OptionText {
    std::vector<std::string> names;    // "-h", "--help"; of an argument its one name
    std::string value;                 // what it takes: "TEXT"; a flag takes nothing
    std::vector<std::string> choices;  // when it takes one of these only
    std::string preset;                // what it is when it is not given, where that is known
    bool required = false;
    bool repeats = false;  // takes any number of values
    std::string help;
};

struct CommandText {
    std::string path;  // "glovebox template prepare"
    std::string help;
    std::vector<OptionText> options;
    std::vector<OptionText> arguments;
    std::vector<CommandText> commands;

    [[nodiscard]] std::string name() const;  // the last word of the path
};

CommandText command_tree(const CLI::App& app, const std::string& path);

// The same commands as a list: each before those below it.
std::vector<const CommandText*> all_commands(const CommandText& tree);

}  // namespace gb::cli
