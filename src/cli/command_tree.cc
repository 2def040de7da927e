// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <string_view>

namespace gb::cli {
namespace {

// CLI11 writes "TEXT:{info,warn}" for a set and "ENUM:value in {end->1,keep->0} OR {1,0}" for names of values.
std::vector<std::string> choices_of(std::string_view type) {
    const std::size_t open = type.find('{');
    const std::size_t close = type.find('}', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return {};
    std::vector<std::string> out;
    for (std::string_view rest = type.substr(open + 1, close - open - 1); !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        out.emplace_back(one.substr(0, one.find("->")));
    }
    return out;
}

OptionText option_text(const CLI::Option& option) {
    OptionText out;
    if (option.get_positional()) {
        out.names.push_back(option.get_name(true, false));
    } else {
        for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
        for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
    }
    if (option.get_items_expected_max() != 0) {  // 0: a flag, with a variable of its own or without
        const std::string type = option.get_type_name();
        out.choices = choices_of(type);
        out.value = type.substr(0, type.find(':'));
        if (out.value.find(' ') != std::string::npos || out.value.empty()) out.value = "VALUE";
    }
    out.preset = option.get_default_str();
    out.required = option.get_required();
    out.repeats = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
    out.help = option.get_description();
    return out;
}

void list(const CommandText& command, std::vector<const CommandText*>& out) {
    out.push_back(&command);
    for (const CommandText& below : command.commands) list(below, out);
}

}  // namespace

std::string CommandText::name() const {
    return path.substr(path.rfind(' ') + 1);
}

CommandText command_tree(const CLI::App& app, const std::string& path) {
    CommandText out;
    out.path = path;
    out.help = app.get_description();
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty())
            (option->get_positional() ? out.arguments : out.options).push_back(option_text(*option));
    for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>()))
        if (!command->get_group().empty() && !command->get_name().empty())
            out.commands.push_back(command_tree(*command, path + " " + command->get_name()));
    return out;
}

std::vector<const CommandText*> all_commands(const CommandText& tree) {
    std::vector<const CommandText*> out;
    list(tree, out);
    return out;
}

}  // namespace gb::cli
