// SPDX-License-Identifier: Apache-2.0
// The file systems of the guest and the step from the initramfs to the root disk.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace gb::init {

Status mount_kernel_file_systems();  // /proc, /sys, /dev with /dev/pts, /dev/shm and /dev/fd

Status wait_for_disk(const std::filesystem::path& device);  // deadline_exceeded when it does not appear

// Waits for the block device and mounts it, read-write.
Status mount_root(const std::filesystem::path& device, const std::filesystem::path& target);

// <root>/run as a tmpfs, and `programs` copied to a tmpfs of its own at <root>/run/glovebox/bin, read-only
// afterwards: nothing that runs on the root disk can pull the agent away, not even `rm -rf /`.
Status place_programs(const std::filesystem::path& programs, const std::filesystem::path& root);

// Moves the mounts over, empties the initramfs to give its memory back, and makes `root` the root folder.
Status switch_root(const std::filesystem::path& root);

}  // namespace gb::init
