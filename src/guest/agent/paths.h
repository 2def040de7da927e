// SPDX-License-Identifier: Apache-2.0
// What a path in a request means. Pure: nothing here looks at the file system.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::agent {

// "/a/./b//../c/" becomes "/a/c". `path` is absolute; ".." at the root stays at the root. Lexical: links are
// not followed, so "link/.." is the folder that holds the link.
std::string clean_path(std::string_view path);

// Contract 3.4: "~" and "~/x" are the user's home, absolute paths stand for themselves, anything else (also
// "") starts at `base`. The result is absolute and clean. A NUL byte or "~somebody" is invalid_argument.
Result<std::string> resolve_path(std::string_view path, std::string_view home, std::string_view base);

std::string_view base_name(std::string_view clean);    // "/" for the root
std::string_view parent_path(std::string_view clean);  // "/" for the root
std::string join_path(std::string_view folder, std::string_view name);

// Text for messages that must be UTF-8: every byte that is not part of a valid sequence becomes U+FFFD.
std::string to_utf8(std::string_view bytes);

}  // namespace gb::agent
