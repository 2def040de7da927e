// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/monitor_socket.h"

#include <cstring>

#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

struct Place {
    UniqueFd folder;  // open as long as the address is used
    sockaddr_un address{};
};

// An address has room for 107 bytes: it goes through a descriptor of the folder.
Result<Place> place_of(const fs::path& path) {
    Place place;
    GB_TRY_ASSIGN(place.folder, open_file(path.parent_path(), O_PATH | O_DIRECTORY));
    const std::string name = fmt::format("/proc/self/fd/{}/{}", place.folder.get(), path.filename().string());
    if (name.size() >= sizeof place.address.sun_path)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("too long a name for a socket: {}", path.string()));
    place.address.sun_family = AF_UNIX;
    std::memcpy(place.address.sun_path, name.c_str(), name.size() + 1);
    return place;
}

Result<UniqueFd> open_socket(int flags) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    if (!fd) return fail_errno("open a socket");
    return fd;
}

}  // namespace

Result<UniqueFd> listen_monitor(const fs::path& path) {
    GB_TRY_ASSIGN(Place place, place_of(path));
    GB_TRY_ASSIGN(UniqueFd fd, open_socket(0));
    if (::unlinkat(place.folder.get(), path.filename().c_str(), 0) != 0 && errno != ENOENT)
        return fail_errno(fmt::format("unlink {}", path.string()));
    // The mode of the name comes from the socket: there is no moment with a wider one.
    if (::fchmod(fd.get(), 0600) != 0) return fail_errno("chmod a socket");
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), sizeof place.address) != 0)
        return fail_errno(fmt::format("bind {}", path.string()));
    if (::listen(fd.get(), 1) != 0) return fail_errno(fmt::format("listen on {}", path.string()));
    return fd;
}

Result<UniqueFd> connect_monitor(const fs::path& path) {
    GB_TRY_ASSIGN(Place place, place_of(path));
    // Does not wait for room in the queue: a VMM that does not take its clients is not one to wait for.
    GB_TRY_ASSIGN(UniqueFd fd, open_socket(SOCK_NONBLOCK));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), sizeof place.address) != 0)
        return fail_errno(fmt::format("connect to {}", path.string()));
    return fd;
}

Result<UniqueFd> reopen_pipe(pid_t pid, int fd) {
    const std::string name = fmt::format("/proc/{}/fd/{}", pid, fd);
    UniqueFd found(::open(name.c_str(), O_PATH | O_CLOEXEC));
    if (!found) return fail_errno(fmt::format("find {}", name));
    struct stat st{};
    struct statfs system{};
    if (::fstat(found.get(), &st) != 0 || ::fstatfs(found.get(), &system) != 0) return fail_errno(name);
    if (!S_ISFIFO(st.st_mode) || system.f_type != PIPEFS_MAGIC)
        return fail(ErrorCode::failed_precondition, fmt::format("{} is not a pipe", name));
    return open_file(fmt::format("/proc/self/fd/{}", found.get()), O_RDONLY | O_NONBLOCK);
}

}  // namespace gb::engine
