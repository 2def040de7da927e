// SPDX-License-Identifier: Apache-2.0
#include "guest/init/mounts.h"

#include <string>
#include <utility>

#include <sys/mount.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb::init {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kDiskLimitMs = 600'000;  // an emulated machine on a busy host
constexpr useconds_t kPollUs = 1'000;

Status mount_at(const char* source, const fs::path& target, const char* type, unsigned long flags,
                const char* options = "") {
    GB_TRY(make_dirs(target));
    if (::mount(source, target.c_str(), type, flags, options) != 0)
        return fail_errno("mount " + target.string());
    return {};
}

Status copy_tree(const fs::path& from, const fs::path& to) {
    std::error_code ec;
    fs::recursive_directory_iterator it(from, ec);
    for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
        fs::path target = to / it->path().lexically_relative(from);
        struct stat st{};
        if (::stat(it->path().c_str(), &st) != 0) return fail_errno("stat " + it->path().string());
        if (S_ISDIR(st.st_mode)) {
            GB_TRY(make_dirs(target));
        } else {
            GB_TRY_ASSIGN(std::string content, read_file(it->path()));
            GB_TRY_ASSIGN(UniqueFd out, open_file(target, O_WRONLY | O_CREAT | O_EXCL, st.st_mode & 0777));
            GB_TRY(write_all(out.get(), content));
        }
    }
    if (ec) return fail_errno(ec.value(), "list " + from.string());
    return {};
}

// Removes what lies on the initramfs itself and leaves everything mounted into it alone.
void empty_folder(const fs::path& folder, dev_t device) {
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec)) {
        struct stat st{};
        if (::lstat(entry.path().c_str(), &st) != 0 || st.st_dev != device) continue;
        if (S_ISDIR(st.st_mode)) empty_folder(entry.path(), device);
        ::remove(entry.path().c_str());
    }
}

}  // namespace

Status mount_kernel_file_systems() {
    GB_TRY(mount_at("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC));
    GB_TRY(mount_at("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC));
    GB_TRY(mount_at("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755"));
    GB_TRY(mount_at("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=0620,ptmxmode=0666"));
    GB_TRY(mount_at("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"));
    // udev's share of /dev: without these no <(…) in a shell and no /dev/stdout.
    for (auto [name, target] :
         {std::pair{"/dev/fd", "/proc/self/fd"}, std::pair{"/dev/stdin", "/proc/self/fd/0"},
          std::pair{"/dev/stdout", "/proc/self/fd/1"}, std::pair{"/dev/stderr", "/proc/self/fd/2"}})
        if (::symlink(target, name) != 0 && errno != EEXIST)
            return fail_errno(std::string("symlink ") + name);
    return {};
}

Status wait_for_disk(const fs::path& device) {
    const std::int64_t deadline = monotonic_ms() + kDiskLimitMs;
    struct stat st{};
    while (::stat(device.c_str(), &st) != 0) {
        if (monotonic_ms() >= deadline)
            return fail(ErrorCode::deadline_exceeded, "no disk " + device.string() + " appeared within 10 min");
        ::usleep(kPollUs);
    }
    return {};
}

Status mount_root(const fs::path& device, const fs::path& target) {
    GB_TRY(wait_for_disk(device));
    // noatime: reading must not write into the overlay.
    return mount_at(device.c_str(), target, "ext4", MS_NOATIME);
}

Status place_programs(const fs::path& programs, const fs::path& root) {
    GB_TRY(mount_at("tmpfs", root / "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"));
    // Where agent and interpreter leave word for each other; a file system of its own, so that nothing else in /run can
    // fill it. It must be there before the programs: what is mounted on it later would hide them.
    GB_TRY(mount_at("tmpfs", root / "run/glovebox", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=8m"));
    const fs::path bin = root / "run/glovebox/bin";
    GB_TRY(mount_at("tmpfs", bin, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"));
    GB_TRY(copy_tree(programs, bin));
    if (::mount("", bin.c_str(), nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
        return fail_errno("make " + bin.string() + " read-only");
    return {};
}

Status switch_root(const fs::path& root) {
    for (const char* name : {"dev", "proc", "sys"}) {
        fs::path from = fs::path("/") / name;
        fs::path to = root / name;
        GB_TRY(make_dirs(to));
        if (::mount(from.c_str(), to.c_str(), nullptr, MS_MOVE, nullptr) != 0)
            return fail_errno("move " + from.string());
    }
    struct stat st{};
    if (::stat("/", &st) != 0) return fail_errno("stat /");
    empty_folder("/", st.st_dev);
    if (::chdir(root.c_str()) != 0) return fail_errno("chdir " + root.string());
    if (::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0) return fail_errno("move the root disk to /");
    if (::chroot(".") != 0) return fail_errno("chroot");
    if (::chdir("/") != 0) return fail_errno("chdir /");
    return {};
}

}  // namespace gb::init
