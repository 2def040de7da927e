// SPDX-License-Identifier: Apache-2.0
// Templates as files: export and import.
#pragma once

#include "cli/commands.h"

namespace gb::cli {

void add_archive_commands(CLI::App& group, Action& run);

}  // namespace gb::cli
