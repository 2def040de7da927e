// SPDX-License-Identifier: Apache-2.0
// What a folder really takes of the disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace gb {

// Bytes of the blocks of all files and folders below and of `folder` itself; holes are not counted, nor are
// files with further hard links, for they would stay without it. Links are not followed, other file systems
// not entered. What goes away while it looks is left out; not_found when the folder itself is not there.
Result<std::uint64_t> own_bytes(const std::filesystem::path& folder);

}  // namespace gb
