// SPDX-License-Identifier: Apache-2.0
// Root disks: a raw ext4 image made from a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/reporter.h"

namespace gb::image {

// Arguments of mke2fs that decide how the file system looks, without size and names.
std::vector<std::string> ext4_options();

// Writes a sparse image of `size_mib` with the content of `tree`, owners, modes and extended attributes
// included. too_large when it does not fit. `image` must not exist; on failure nothing is left under that
// name.
Status make_ext4(const std::filesystem::path& tree, const std::filesystem::path& image, int size_mib,
                 Reporter& reporter, const Reporter::Span& span);

}  // namespace gb::image
