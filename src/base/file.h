// SPDX-License-Identifier: Apache-2.0
// Whole files, read and written so that no half-written file is ever seen under its name.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb {

Result<std::string> read_file(const std::filesystem::path& path);

// Writes to a temporary name beside `path`, syncs, renames, syncs the folder.
Status write_file_atomic(const std::filesystem::path& path, std::string_view data, unsigned mode = 0644);

// One write(2) into an existing file such as a cgroup control file. Not atomic, not synced.
Status write_control_file(const std::filesystem::path& path, std::string_view data);

Status write_all(int fd, std::string_view data);
Result<UniqueFd> open_file(const std::filesystem::path& path, int flags, unsigned mode = 0600);
Status make_dirs(const std::filesystem::path& path, unsigned mode = 0755);

// What was written to a file, or the names in a folder, are on the disk when this returns.
Status sync_path(const std::filesystem::path& path);

// Removes a folder and what is in it without following links; missing is success.
Status remove_tree(const std::filesystem::path& path);

// Appends what is in the regular file `in` to the regular file `out`, keeping holes. Moves no file offset of `out`.
// aborted when `in` is cut meanwhile: nothing is made up for what has gone.
Status append_sparse(int in, int out);

// Copies a file keeping holes, by reflink where the file system can.
Status copy_file_sparse(const std::filesystem::path& from, const std::filesystem::path& to, unsigned mode = 0644);

}  // namespace gb
