// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/overlay.h"

#include "base/ids.h"
#include "base/subprocess.h"
#include "engine/microvm/command_line.h"

namespace gb::engine {

Status make_empty_overlay(const std::filesystem::path& path, std::uint64_t disk_bytes) {
    if (disk_bytes == 0 || disk_bytes % 512 != 0)
        return fail(ErrorCode::invalid_argument, "a disk's size must be a multiple of 512 bytes");
    std::filesystem::path temporary = path;
    temporary += ".tmp-" + random_id(8);
    // -u: the base exists only in the jail and is not opened here.
    auto made = run_checked({"qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-u", "-b", kJailBase,
                             temporary.string(), std::to_string(disk_bytes)});
    if (made && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
    Error error = made ? Error::from_errno(errno, "rename to " + path.string()) : made.error();
    ::unlink(temporary.c_str());
    return std::unexpected(std::move(error));
}

}  // namespace gb::engine
