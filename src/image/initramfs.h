// SPDX-License-Identifier: Apache-2.0
// What the guest kernel unpacks first: glovebox-init, the kernel's modules, and our programs. They travel
// here and not in root images, so a new version of ours needs no new image.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/kernel.h"

namespace gb::image {

// A file that the guest finds, read-only, as /run/glovebox/bin/<path>. Executable when the source is.
struct GuestFile {
    std::filesystem::path source;
    std::string path;  // relative, e.g. "glovebox-agent" or "kernels/startup.py"
};

// Writes an lz4-compressed archive to `out`, replacing it at once. The same input gives the same bytes.
// `init` is the static glovebox-init; `files` must hold "glovebox-agent", which it starts as PID 1.
Status build_initramfs(const GuestKernel& kernel, const std::filesystem::path& init,
                       const std::vector<GuestFile>& files, const std::filesystem::path& out);

// A folder's files as GuestFiles below `prefix`, sorted.
Result<std::vector<GuestFile>> guest_files_in(const std::filesystem::path& folder, std::string_view prefix);

}  // namespace gb::image
