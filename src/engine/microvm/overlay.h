// SPDX-License-Identifier: Apache-2.0
// Copy-on-write disks over a template's disk. One empty overlay is made for each template; a sandbox's disk
// is a copy of that small file (copy_file_sparse), so that no program is started on the way.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace gb::engine {

// An empty qcow2 of `disk_bytes` (a multiple of 512) whose base is a raw image. The base's path is the one
// inside the jail, so the file belongs to no particular template's folder.
Status make_empty_overlay(const std::filesystem::path& path, std::uint64_t disk_bytes);

}  // namespace gb::engine
