// SPDX-License-Identifier: Apache-2.0
// Folders and trees, done as root on behalf of a user: what is made belongs to them. Blocking.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "guest/agent/users.h"
#include "proto/filesystem.pb.h"

namespace gb::agent {

// Makes `path` and its missing parents, 0755 and the user's. What exists is left alone, modes and owners too.
// invalid_argument when something on the way is no folder. True when `path` itself was made.
Result<bool> make_folders(const std::string& path, const User& owner);

// not_found for a path that is not there, invalid_argument for one that is no folder. Follows links.
Status check_folder(const std::string& path);

// The entries below `path` down to `depth` levels (0 counts as 1): a folder before what is in it, names in
// byte order. Links to folders are listed and not entered, except `path` itself. not_found, invalid_argument
// (no folder).
Result<std::vector<filesystem::EntryInfo>> list_folder(const std::string& path, std::uint32_t depth,
                                                       const UserTable& users);

// Renames; makes the parents of `destination`. Files move between file systems too, folders do not.
Status move_entry(const std::string& source, const std::string& destination, const User& owner);

}  // namespace gb::agent
