// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gb::cli {
namespace {

// Text that roff takes for text: no hyphenated minus, no escape, no request at the start of a line.
std::string plain(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (const char c : text) {
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        line_start = c == '\n';
    }
    return out;
}

std::string bold(std::string_view text) {
    return fmt::format("\\fB{}\\fR", plain(text));
}

std::string italic(std::string_view text) {
    return fmt::format("\\fI{}\\fR", plain(text));
}

// "glovebox template prepare" has the page glovebox-template(1).
std::string page_of(const CommandText& command) {
    std::string out = command.path;
    std::ranges::replace(out, ' ', '-');
    return out;
}

std::string value_of(const OptionText& option) {
    return option.choices.empty() ? italic(option.value) : plain(fmt::format("{}", fmt::join(option.choices, "|")));
}

std::string synopsis(const CommandText& command) {
    std::string out = bold(command.path);
    if (!command.options.empty()) out += fmt::format(" [{}]", italic("OPTIONS"));
    for (const OptionText& argument : command.arguments) {
        const std::string text = italic(argument.names.front()) + (argument.repeats ? "..." : "");
        out += argument.required ? " " + text : fmt::format(" [{}]", text);
    }
    if (!command.commands.empty()) out += " " + italic("COMMAND");
    return out + "\n";
}

std::string paragraph(const OptionText& option, bool argument) {
    std::string names;
    for (const std::string& name : option.names)
        names += (names.empty() ? "" : ", ") + (argument ? italic(name) : bold(name));
    if (!argument && !option.value.empty()) names += " " + value_of(option);
    std::string help = plain(option.help);
    if (argument && !option.choices.empty()) help += ": " + value_of(option);
    if (!option.preset.empty()) help += fmt::format(" [{}]", plain(option.preset));
    if (option.required && !argument) help += " (required)";
    return fmt::format(".TP\n{}\n{}\n", names, help);
}

std::string paragraphs(const CommandText& command) {
    std::string out;
    for (const OptionText& argument : command.arguments) out += paragraph(argument, true);
    for (const OptionText& option : command.options) out += paragraph(option, false);
    return out;
}

std::string head(std::string_view page, std::string_view version, std::string_view help) {
    std::string title(page);
    std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
    // No date: a page changes when the program does, and its version is there.
    return fmt::format(".TH {} 1 \"\" \"glovebox {}\" \"Glovebox\"\n.SH NAME\n{} \\- {}\n", plain(title), version,
                       plain(page), plain(help));
}

std::string command_page(const CommandText& command, std::string_view version) {
    std::string out = head(page_of(command), version, command.help);
    out += ".SH SYNOPSIS\n" + synopsis(command);
    for (const CommandText* below : all_commands(command))
        if (below != &command && below->commands.empty()) out += ".br\n" + synopsis(*below);
    if (!command.options.empty() || !command.arguments.empty()) out += ".SH OPTIONS\n" + paragraphs(command);
    for (const CommandText* below : all_commands(command)) {
        if (below == &command || !below->commands.empty()) continue;
        out += fmt::format(".SH {}\n{}\n{}", plain(below->path.substr(command.path.rfind(' ') + 1)), plain(below->help),
                           paragraphs(*below));
    }
    return out + ".SH SEE ALSO\n.BR glovebox (1)\n";
}

// What is no command's: where things are and what an exit code says. See paths.h and error_table.cc.
constexpr std::string_view kCommon = R"(.SH ENVIRONMENT
.TP
\fBGLOVEBOX_DATA_DIR\fR
Stands for \fB\-\-data\-dir\fR: templates, sandboxes and the store
.TP
\fBGLOVEBOX_CACHE_DIR\fR
Stands for \fB\-\-cache\-dir\fR: what can be built or downloaded again
.TP
\fBGLOVEBOX_TEMPLATES_DIR\fR
Stands for \fB\-\-templates\-dir\fR: templates that several servers share
.SH FILES
.TP
/etc/glovebox/config.toml
The configuration of the server; every setting has a default
.TP
/var/lib/glovebox
Templates, sandboxes, keys and the store
.TP
/var/cache/glovebox
Root images and kernels, which can be made again
.TP
/usr/share/glovebox/images
Definitions of the templates
.TP
/usr/share/doc/glovebox
The manual for operators
.SH EXIT STATUS
0 when it was done, another number when it was not; the reason is a line on standard error.
)";

std::string program_page(const CommandText& tree, std::string_view version) {
    std::string out = head(page_of(tree), version, tree.help);
    out += ".SH SYNOPSIS\n" + synopsis(tree);
    out += ".SH OPTIONS\n" + paragraphs(tree);
    out += ".SH COMMANDS\n";
    std::string pages;
    for (const CommandText& command : tree.commands) {
        out += fmt::format(".TP\n{}\n{}\n", bold(command.name()), plain(command.help));
        pages += fmt::format("{}.BR {} (1)", pages.empty() ? "" : ",\n", plain(page_of(command)));
    }
    return out + std::string(kCommon) + ".SH SEE ALSO\n" + pages + "\n";
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandText& tree, std::string_view version) {
    std::vector<ManualPage> out{{page_of(tree) + ".1", program_page(tree, version)}};
    for (const CommandText& command : tree.commands)
        out.push_back({page_of(command) + ".1", command_page(command, version)});
    return out;
}

}  // namespace gb::cli
