// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/file_source.h"

#include <cerrno>

#include <linux/magic.h>
#include <sys/vfs.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::agent {
namespace {

constexpr std::size_t kSourcePiece = 64 * 1024;

// Those that <linux/magic.h> does not have.
constexpr std::uint32_t kBcachefs = 0xca451a4e;
constexpr std::uint32_t kZfs = 0x2fc12fc1;
constexpr std::uint32_t kNtfs3 = 0x7366746e;

}  // namespace

Lengths lengths_of(int fd) {
    struct statfs info{};
    if (::fstatfs(fd, &info) != 0) return Lengths::unknown;
    switch (static_cast<std::uint32_t>(info.f_type)) {
        case EXT4_SUPER_MAGIC:
        case XFS_SUPER_MAGIC:
        case BTRFS_SUPER_MAGIC:
        case F2FS_SUPER_MAGIC:
        case TMPFS_MAGIC:
        case RAMFS_MAGIC:
        case OVERLAYFS_SUPER_MAGIC:
        case SQUASHFS_MAGIC:
        case EROFS_SUPER_MAGIC_V1:
        case ISOFS_SUPER_MAGIC:
        case UDF_SUPER_MAGIC:
        case MSDOS_SUPER_MAGIC:
        case EXFAT_SUPER_MAGIC:
        case kBcachefs:
        case kZfs:
        case kNtfs3:
            return Lengths::exact;
        case FUSE_SUPER_MAGIC:  // virtiofs too
        case NFS_SUPER_MAGIC:
        case SMB_SUPER_MAGIC:
        case SMB2_SUPER_MAGIC:
        case CIFS_SUPER_MAGIC:
        case V9FS_MAGIC:
        case CEPH_SUPER_MAGIC:
        case AFS_FS_MAGIC:
        case AFS_SUPER_MAGIC:
            return Lengths::told;
        default:
            return Lengths::unknown;
    }
}

Result<FileSource> FileSource::open(const std::string& path) {
    FileSource source{.path = path};
    // O_NONBLOCK: opening a pipe would wait for its other end.
    source.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!source.fd) {
        if (errno == ENOENT || errno == ENOTDIR)
            return fail(ErrorCode::not_found, fmt::format("path '{}' does not exist", path));
        if (errno == ENXIO)  // a socket, or a pipe
            return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is not a regular file", path));
        return fail_errno(fmt::format("open '{}'", path));
    }
    if (::fstat(source.fd.get(), &source.info) != 0) return fail_errno(fmt::format("stat '{}'", path));
    if (S_ISDIR(source.info.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is a directory", path));
    if (!S_ISREG(source.info.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is not a regular file", path));
    source.lengths = lengths_of(source.fd.get());
    return source;
}

std::optional<std::uint64_t> FileSource::size() const {
    if (lengths == Lengths::unknown) return std::nullopt;
    return static_cast<std::uint64_t>(info.st_size);
}

Result<std::string> FileSource::read(std::size_t most) const {
    std::string out(most, '\0');
    std::size_t got = 0;
    while (got < most) {
        const ssize_t n = ::read(fd.get(), out.data() + got, most - got);
        if (n > 0) {
            got += static_cast<std::size_t>(n);
        } else if (n == 0 || errno == EAGAIN) {
            break;  // some files of /proc would wait for more to come: this is all there is now
        } else if (errno != EINTR) {
            return fail_errno(fmt::format("read '{}'", path));
        }
    }
    out.resize(got);
    return out;
}

bool FileSource::is_at_rest() const {
    // A read lease is given only for a file that nobody has open for writing; it is given back at once. Should
    // somebody open the file in between, they wait until then, and the kernel's word of it must not be SIGIO,
    // which ends a program.
    if (::fcntl(fd.get(), F_SETSIG, SIGURG) != 0 || ::fcntl(fd.get(), F_SETLEASE, F_RDLCK) != 0) return false;
    ::fcntl(fd.get(), F_SETLEASE, F_UNLCK);
    return true;
}

Status append_readable(const FileSource& source, int out) {
    if (source.lengths == Lengths::exact) return append_sparse(source.fd.get(), out);
    if (::lseek(out, 0, SEEK_END) < 0) return fail_errno("seek");
    for (;;) {
        GB_TRY_ASSIGN(const std::string piece, source.read(kSourcePiece));
        if (piece.empty()) return {};
        GB_TRY(write_all(out, piece));
    }
}

}  // namespace gb::agent
