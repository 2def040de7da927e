// SPDX-License-Identifier: Apache-2.0
// The two ends of QEMU's monitor: a Unix socket that the VMM listens on, so that a later server can connect
// too, and the way to its console's other end. See unix(7), qemu(1) -chardev socket.
#pragma once

#include <filesystem>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::engine {

// Binds `path` (a socket of root's alone, mode 0600, that replaces an older one) and listens. The length of
// the path does not matter; its folder must be one in which only root can write.
Result<UniqueFd> listen_monitor(const std::filesystem::path& path);

// Connects. Returns before the VMM accepts, which it does when its last client has gone. not_found or
// unavailable when nobody listens.
Result<UniqueFd> connect_monitor(const std::filesystem::path& path);

// A new reading end of the pipe that is descriptor `fd` of another process. Takes nothing but a pipe: the
// process may be a hostile one. What is written while no reading end exists is lost to its writer.
Result<UniqueFd> reopen_pipe(pid_t pid, int fd);

}  // namespace gb::engine
