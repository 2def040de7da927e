// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <sys/mount.h>
#include <sys/stat.h>

#include <unistd.h>

#include "base/log.h"
#include "guest/agent/paths.h"
#include "guest/agent/system_setup.h"

namespace gb::agent {
namespace {

bool is_mount_point(const std::string& path) {
    struct stat self{}, parent{};
    return ::stat(path.c_str(), &self) == 0 && ::stat(std::string(parent_path(path)).c_str(), &parent) == 0 &&
           self.st_dev != parent.st_dev;
}

void mount_once(const std::string& path, const char* type, unsigned long flags, const char* data) {
    if (is_mount_point(path)) return;
    ::mkdir(path.c_str(), 0755);
    if (::mount(type, path.c_str(), type, flags, data) != 0)
        log::warn("not mounted", {{"path", path}, {"error", Error::from_errno(errno, "mount").message}});
}

}  // namespace

void open_devices(const std::string& folder) {
    for (const char* name : {"fuse", "net/tun", "vsock"}) {
        const std::string path = folder + "/" + name;
        if (::chmod(path.c_str(), 0666) != 0 && errno != ENOENT)
            log::warn("device not opened", {{"path", path}, {"error", Error::from_errno(errno, "chmod").message}});
    }
}

void mount_file_systems(const std::string& state_dir) {
    constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    mount_once("/proc", "proc", kPlain, nullptr);
    mount_once("/sys", "sysfs", kPlain, nullptr);
    mount_once("/dev", "devtmpfs", MS_NOSUID, "mode=0755");
    open_devices("/dev");
    mount_once("/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
    mount_once("/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
    mount_once("/sys/fs/cgroup", "cgroup2", kPlain, nullptr);
    // devtmpfs makes devices only; shells need these for <(…) and the like.
    for (auto [name, target] : {std::pair{"/dev/fd", "/proc/self/fd"},
                                {"/dev/stdin", "/proc/self/fd/0"},
                                {"/dev/stdout", "/proc/self/fd/1"},
                                {"/dev/stderr", "/proc/self/fd/2"}})
        if (::symlink(target, name) != 0 && errno != EEXIST)
            log::warn("no link", {{"path", name}, {"error", Error::from_errno(errno, "symlink").message}});
    if (!state_dir.empty()) {
        ::mkdir("/run", 0755);
        mount_once(state_dir, "tmpfs", kPlain, "mode=0755,size=8m");
    }
}

}  // namespace gb::agent
