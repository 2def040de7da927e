// SPDX-License-Identifier: Apache-2.0
// What the contract tells about a file (3.4, EntryInfo).
#pragma once

#include <map>
#include <string>

#include <sys/stat.h>

#include "base/result.h"
#include "guest/agent/users.h"
#include "proto/filesystem.pb.h"

namespace gb::agent {

// Mode bits as Go prints them: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx". Pure.
std::string permission_text(mode_t mode);

// Without following a link at `path` itself. The path is reported as given.
Result<filesystem::EntryInfo> entry_info(const std::string& path, const UserTable& users);

// Extended attributes "user.e2b.<key>", without that prefix. Links are followed; none on any error.
std::map<std::string, std::string> read_metadata(const std::string& path);

inline constexpr std::string_view kMetadataPrefix = "user.e2b.";

}  // namespace gb::agent
