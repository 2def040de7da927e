// SPDX-License-Identifier: Apache-2.0
// A pipe whose ends have owners, closed on exec.
#pragma once

#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::interpreter {

struct Pipe {
    UniqueFd read, write;
};

inline Result<Pipe> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The other end is not affected.
inline UniqueFd not_blocking(UniqueFd fd) {
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    return fd;
}

}  // namespace gb::interpreter
