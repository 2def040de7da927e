// SPDX-License-Identifier: Apache-2.0
// The kernel's start-up files (folder kernel/) travel inside the program and are written out when it starts,
// so that the guest image needs one file only.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace gb::interpreter {

Status write_kernel_scripts(const std::filesystem::path& folder);

}  // namespace gb::interpreter
