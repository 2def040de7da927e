// SPDX-License-Identifier: Apache-2.0
// All three scripts do the same: they walk the words before the cursor to see which command these name, then offer what
// that command takes. After an option that takes one of a few words, these; after another that takes something, files.
#include "cli/completion.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gb::cli {
namespace {

std::string in_quotes(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c == '\n' ? ' ' : c;
    }
    return out + "'";
}

// In fish a quote inside quotes is escaped, and so is the escape.
std::string in_fish_quotes(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out + "'";
}

// Patterns for `case "$at $word"`: every command but the program itself.
std::string command_patterns(const CommandText& tree, std::string_view separator) {
    std::vector<std::string> out;
    for (const CommandText* command : all_commands(tree))
        if (command != &tree) out.push_back(in_quotes(command->path));
    return fmt::format("{}", fmt::join(out, separator));
}

// Patterns for `case "$at $previous"`: options that take a value, with the words they take if these are known.
std::string value_cases(const CommandText& tree, std::string_view with_words, std::string_view without) {
    std::string out;
    for (const CommandText* command : all_commands(tree)) {
        for (const OptionText& option : command->options) {
            if (option.value.empty()) continue;
            std::vector<std::string> names;
            for (const std::string& name : option.names) names.push_back(in_quotes(command->path + " " + name));
            const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
            out += fmt::format("        {}) {} ;;\n", fmt::join(names, " | "),
                               option.choices.empty() ? std::string(without)
                                                      : fmt::format(fmt::runtime(with_words), words));
        }
    }
    return out;
}

// Words that a command takes, each with what it is for.
struct Word {
    std::string text, help;
};
std::vector<Word> words_of(const CommandText& command) {
    std::vector<Word> out;
    for (const CommandText& below : command.commands) out.push_back({below.name(), below.help});
    for (const OptionText& argument : command.arguments)
        for (const std::string& choice : argument.choices) out.push_back({choice, argument.help});
    for (const OptionText& option : command.options)
        for (const std::string& name : option.names) out.push_back({name, option.help});
    return out;
}

}  // namespace

std::string bash_completion(const CommandText& tree) {
    std::string out = fmt::format(
        R"(# bash completion for {0}
_{0}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} at={0} words= word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in
        {1}) at="$at $word" ;;
        esac
    done
    COMPREPLY=()
    case "$at $previous" in
)",
        tree.path, command_patterns(tree, " | "));
    out += value_cases(tree, "COMPREPLY=($(compgen -W '{}' -- \"$current\")); return", "return");
    out += "    esac\n    case \"$at\" in\n";
    for (const CommandText* command : all_commands(tree)) {
        std::vector<std::string> words;
        for (const Word& word : words_of(*command)) words.push_back(word.text);
        out += fmt::format("        {}) words={} ;;\n", in_quotes(command->path), in_quotes(fmt::format("{}", fmt::join(words, " "))));
    }
    // With nothing to offer, -o default offers files.
    return out + fmt::format("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}}\ncomplete -o default -F _{0} {0}\n",
                             tree.path);
}

std::string zsh_completion(const CommandText& tree) {
    std::string out = fmt::format(
        R"(#compdef {0}
_{0}() {{
    local at={0} word
    local -a entries
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$at $word" in
        {1}) at="$at $word" ;;
        esac
    done
    case "$at ${{words[CURRENT-1]}}" in
)",
        tree.path, command_patterns(tree, " | "));
    out += value_cases(tree, "compadd {}; return", "_files; return");
    out += "    esac\n    case \"$at\" in\n";
    for (const CommandText* command : all_commands(tree)) {
        out += fmt::format("        {}) entries=(\n", in_quotes(command->path));
        for (const Word& word : words_of(*command)) out += fmt::format("            {}\n", in_quotes(word.text + ":" + word.help));
        out += "        ) ;;\n";
    }
    return out + fmt::format("    esac\n    _describe -t commands {0} entries || _files\n}}\n"
                             "if [ \"$funcstack[1]\" = _{0} ]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
                             tree.path);
}

std::string fish_completion(const CommandText& tree) {
    std::string out = fmt::format(
        R"(# fish completion for {0}
function __{0}_at
    set -l at {0}
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case {1}
                set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
)",
        tree.path, command_patterns(tree, " "));
    for (const CommandText* command : all_commands(tree)) {
        const std::string line = fmt::format("complete -c {} -n \"__{}_at '{}'\"", tree.path, tree.path, command->path);
        if (!command->commands.empty()) out += line + " -f\n";  // a command stands here, not a file
        for (const CommandText& below : command->commands)
            out += fmt::format("{} -a {} -d {}\n", line, below.name(), in_fish_quotes(below.help));
        for (const OptionText& argument : command->arguments)
            if (!argument.choices.empty())
                out += fmt::format("{} -f -a {}\n", line, in_fish_quotes(fmt::format("{}", fmt::join(argument.choices, " "))));
        for (const OptionText& option : command->options) {
            std::string names;
            for (const std::string& name : option.names)
                names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (!option.choices.empty())
                names += " -x -a " + in_fish_quotes(fmt::format("{}", fmt::join(option.choices, " ")));
            else if (!option.value.empty())
                names += " -r";
            out += fmt::format("{}{} -d {}\n", line, names, in_fish_quotes(option.help));
        }
    }
    return out;
}

}  // namespace gb::cli
