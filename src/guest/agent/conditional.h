// SPDX-License-Identifier: Apache-2.0
// Conditional requests for a file (RFC 9110, section 13). Pure.
#pragma once

#include <ctime>
#include <optional>
#include <string>

#include <sys/stat.h>

#include "http/message.h"

namespace gb::agent {

// What a request may compare the file with.
struct FileVersion {
    std::string etag;                     // strong, with its quotes; empty: nothing tells versions apart
    std::optional<std::time_t> modified;  // nothing: nobody knows
};
// Another file under the same name has another inode, so it has another tag even within one tick of the
// clock.
FileVersion version_of(const struct stat& info);

enum class Condition { met, not_modified, failed };  // answers: the file, 304, 412

// If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, in the order of 13.2.2.
Condition check_conditions(const http::Headers& headers, const FileVersion& version);

// If-Range: whether a Range of the request is about this version. Without it, yes.
bool range_applies(const http::Headers& headers, const FileVersion& version);

}  // namespace gb::agent
