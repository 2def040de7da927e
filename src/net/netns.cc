// SPDX-License-Identifier: Apache-2.0
#include "net/netns.h"

#include <cstdlib>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>

#include "base/log.h"

namespace gb::net {

Result<UniqueFd> current_netns() {
    int fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno("open /proc/thread-self/ns/net");
    return UniqueFd(fd);
}

Result<NetnsScope> NetnsScope::enter(int netns_fd) {
    GB_TRY_ASSIGN(UniqueFd home, current_netns());
    if (::setns(netns_fd, CLONE_NEWNET) != 0) return fail_errno("enter network namespace");
    return NetnsScope(std::move(home));
}

Result<NetnsScope> NetnsScope::enter_new() {
    GB_TRY_ASSIGN(UniqueFd home, current_netns());
    if (::unshare(CLONE_NEWNET) != 0) return fail_errno("create network namespace");
    return NetnsScope(std::move(home));
}

NetnsScope::~NetnsScope() {
    if (!home_) return;
    if (::setns(home_.get(), CLONE_NEWNET) != 0) {
        log::error("a thread cannot return to its network namespace");
        std::abort();
    }
}

Result<UniqueFd> netns_of(pid_t pid) {
    const std::string path = fmt::format("/proc/{}/ns/net", pid);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(fmt::format("open {}", path));
    return fd;
}

Result<std::uint64_t> netns_id(int netns_fd) {
    struct stat st{};
    if (::fstat(netns_fd, &st) != 0) return fail_errno("look at a network namespace");
    return st.st_ino;  // namespaces(7): all are of one device
}

Result<UniqueFd> create_netns() {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter_new());
    return current_netns();
}

}  // namespace gb::net
