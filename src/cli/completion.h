// SPDX-License-Identifier: Apache-2.0
// Scripts that let a shell complete the program's commands and options, from the tree of commands.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace gb::cli {

std::string bash_completion(const CommandText& tree);
std::string zsh_completion(const CommandText& tree);
std::string fish_completion(const CommandText& tree);

}  // namespace gb::cli
