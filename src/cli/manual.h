// SPDX-License-Identifier: Apache-2.0
// Manual pages in roff (man(7)), from the tree of commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_tree.h"

namespace gb::cli {

struct ManualPage {
    std::string file;  // "glovebox-serve.1"
    std::string text;
};

// One page for the program, one for each of its commands with all that stands below it.
std::vector<ManualPage> manual_pages(const CommandText& tree, std::string_view version);

}  // namespace gb::cli
