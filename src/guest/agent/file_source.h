// SPDX-License-Identifier: Apache-2.0
// A regular file that is read to be sent or copied, and what may be promised about it before it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/stat.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::agent {

// What stat says about the length of a file.
enum class Lengths {
    exact,    // a local file system: so many bytes, unless somebody changes the file now
    told,     // NFS, FUSE and the like: most likely so many
    unknown,  // made while they are read (/proc, /sys): neither its length nor its times mean anything
};
// By the file system that the open file is on; one that we do not know is `unknown`.
Lengths lengths_of(int fd);

struct FileSource {
    UniqueFd fd;
    struct stat info{};
    Lengths lengths = Lengths::unknown;
    std::string path;

    // Follows links and never waits, whatever is at the path. not_found, or invalid_argument when it is no
    // regular file.
    static Result<FileSource> open(const std::string& path);

    // Nothing when only reading tells.
    [[nodiscard]] std::optional<std::uint64_t> size() const;
    // Up to `most` bytes from the file's offset; fewer only at the end of what is there to be read now.
    [[nodiscard]] Result<std::string> read(std::size_t most) const;
    // Nobody can change the file at this moment, because nobody has it open for writing. False when the kernel
    // does not tell.
    [[nodiscard]] bool is_at_rest() const;
};

// Appends all that can be read from the file, whatever length it has.
Status append_readable(const FileSource& source, int out);

}  // namespace gb::agent
