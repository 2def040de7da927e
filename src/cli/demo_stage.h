// SPDX-License-Identifier: Apache-2.0
// What the demo needs around it, made one after the other and removed in the reverse order, also when it is
// interrupted: a folder for the server's data, the outside world, the server.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "cli/demo_data.h"
#include "cli/demo_report.h"

namespace gb::cli {

// Carries the demo out, with the templates of this folder. canceled when a signal (SIGINT, SIGTERM, SIGHUP)
// ended it. Whatever happens, nothing runs afterwards and nothing is left but the report's folder.
Status stage_demo(const std::filesystem::path& templates_dir, const DemoData& data, DemoReport& report);

}  // namespace gb::cli
