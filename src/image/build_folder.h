// SPDX-License-Identifier: Apache-2.0
// A place to build something that ends up in a cache: one builder at a time, and nothing left behind.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::image {

class BuildFolder {
  public:
    // Makes `<parent>/.build-<name>-<random>`. Waits while another process builds the same; removes what
    // builders left that were killed. With `memory_mib`, the folder is a tmpfs of that size if the host has
    // twice as much memory to spare: unpacking, and above all removing, a hundred thousand files is minutes
    // on a busy disk.
    static Result<BuildFolder> make(const std::filesystem::path& parent, std::string_view name,
                                    int memory_mib = 0);

    BuildFolder(BuildFolder&&) = default;
    BuildFolder& operator=(BuildFolder&&) = delete;
    BuildFolder(const BuildFolder&) = delete;
    BuildFolder& operator=(const BuildFolder&) = delete;
    ~BuildFolder();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    BuildFolder(UniqueFd lock, std::filesystem::path path) : lock_(std::move(lock)), path_(std::move(path)) {}

    UniqueFd lock_;  // invalid once moved from
    std::filesystem::path path_;
};

// Removes a tree that programs of a build may have mounted file systems in: unmounts those first, so that
// nothing outside is ever deleted through a mount. failed_precondition when one cannot be unmounted.
Status remove_build_tree(const std::filesystem::path& path);

}  // namespace gb::image
