// SPDX-License-Identifier: Apache-2.0
// What the program says about itself to others: to shells, and, when it is packed, to the readers of its manual.
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/file.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"

namespace gb::cli {
namespace {

constexpr const char* kProgram = "glovebox";

Status write_manual(const CLI::App& app, const std::filesystem::path& folder) {
    GB_TRY(make_dirs(folder));
    for (const ManualPage& page : manual_pages(command_tree(app, kProgram), version()))
        GB_TRY(write_file_atomic(folder / page.file, page.text));
    return {};
}

}  // namespace

void add_describe(CLI::App& app, Action& run) {
    CLI::App* completion = app.add_subcommand("completion", "Print a script that lets a shell complete the commands");
    auto shell = std::make_shared<std::string>();
    completion->add_option("shell", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "fish", "zsh"}));
    completion->callback([&app, &run, shell] {
        run = [&app, shell] {
            const CommandText tree = command_tree(app, kProgram);
            fmt::print("{}", *shell == "bash" ? bash_completion(tree)
                             : *shell == "zsh" ? zsh_completion(tree)
                                               : fish_completion(tree));
            return 0;
        };
    });

    CLI::App* manual = app.add_subcommand("manual", "Write the manual pages into a folder");
    manual->group("");  // for the package, which has them ready
    auto folder = std::make_shared<std::filesystem::path>();
    manual->add_option("folder", *folder, "The folder")->required();
    manual->callback([&app, &run, folder] {
        run = [&app, folder] {
            Status status = write_manual(app, *folder);
            return status ? 0 : complain(status.error());
        };
    });
}

}  // namespace gb::cli
