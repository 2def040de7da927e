// SPDX-License-Identifier: Apache-2.0
// Builds the root disk of a template definition from the Debian archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/definition.h"
#include "image/progress.h"

namespace gb::image {

struct RootfsImage {
    std::filesystem::path file;      // <cache>/rootfs/<name>-<hash>.ext4, raw and sparse; never written again
    std::string hash;                // definition_hash()
    std::uint64_t size_bytes = 0;    // of the disk
    std::uint64_t stored_bytes = 0;  // what it takes on the host
    bool cached = false;             // it was there already
};

// Needs root and the network; takes one to five minutes, or nothing when the image is in the cache. Blocks.
// Safe to call from several processes: one builds, the others wait for it.
Result<RootfsImage> build_rootfs(const TemplateDefinition& definition, const std::filesystem::path& cache,
                                 const ProgressFn& progress = {});

// Where build_rootfs() puts the image, whether or not it exists.
Result<std::filesystem::path> rootfs_path(const TemplateDefinition& definition,
                                          const std::filesystem::path& cache);

// Everything beside the definition that decides what an image contains, for its hash.
std::vector<std::string> rootfs_recipe();

}  // namespace gb::image
