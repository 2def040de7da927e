// SPDX-License-Identifier: Apache-2.0
// Loads the kernel modules that the initramfs carries.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace gb::init {

// Loads `folder`/<name> for each line of `folder`/order, in that order; one that is loaded already is no
// error.
Status load_modules(const std::filesystem::path& folder);

}  // namespace gb::init
