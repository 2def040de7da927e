// SPDX-License-Identifier: Apache-2.0
// The commands of `glovebox sandbox` that are about its network.
#pragma once

#include "cli/ask.h"

namespace gb::cli {

void add_network_commands(CLI::App& group, Action& run);

}  // namespace gb::cli
