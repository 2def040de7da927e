// SPDX-License-Identifier: Apache-2.0
// `glovebox doctor --engine`.
#pragma once

#include "node/machinery.h"

namespace gb::cli {

// Tries this host's engine and prints the report; the exit code of the command.
int doctor_engine(const NodeOptions& options, bool json);

}  // namespace gb::cli
