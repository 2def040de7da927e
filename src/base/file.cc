// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/ids.h"

namespace gb {
namespace fs = std::filesystem;

Result<UniqueFd> open_file(const fs::path& path, int flags, unsigned mode) {
    int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd < 0) return fail_errno(fmt::format("open {}", path.string()));
    return UniqueFd(fd);
}

Result<std::string> read_file(const fs::path& path) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
    std::string out;
    char buffer[65536];
    for (;;) {
        ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(fmt::format("read {}", path.string()));
        if (n == 0) return out;
        out.append(buffer, static_cast<std::size_t>(n));
    }
}

Status write_all(int fd, std::string_view data) {
    while (!data.empty()) {
        ssize_t n = ::write(fd, data.data(), data.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno("write");
        data.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

Status write_file_atomic(const fs::path& path, std::string_view data, unsigned mode) {
    fs::path temporary = path;
    temporary += ".tmp-" + random_id(8);
    auto write = [&]() -> Status {
        GB_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
        if (auto status = write_all(fd.get(), data); !status)
            return std::unexpected(status.error().with(path.string()));
        if (::fsync(fd.get()) != 0) return fail_errno(fmt::format("fsync {}", temporary.string()));
        if (::rename(temporary.c_str(), path.c_str()) != 0)
            return fail_errno(fmt::format("rename to {}", path.string()));
        GB_TRY_ASSIGN(UniqueFd dir, open_file(path.parent_path().empty() ? fs::path(".") : path.parent_path(),
                                              O_RDONLY | O_DIRECTORY));
        if (::fsync(dir.get()) != 0) return fail_errno(fmt::format("fsync {}", path.parent_path().string()));
        return {};
    };
    Status status = write();
    if (!status) ::unlink(temporary.c_str());
    return status;
}

Status write_control_file(const fs::path& path, std::string_view data) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_WRONLY));
    if (::write(fd.get(), data.data(), data.size()) != static_cast<ssize_t>(data.size()))
        return fail_errno(fmt::format("write {}", path.string()));
    return {};
}

Status make_dirs(const fs::path& path, unsigned mode) {
    std::error_code ec;
    if (fs::is_directory(path, ec)) return {};
    if (path.has_parent_path() && path.parent_path() != path) GB_TRY(make_dirs(path.parent_path(), mode));
    if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
        return fail_errno(fmt::format("mkdir {}", path.string()));
    if (!fs::is_directory(path, ec)) return fail_errno(ENOTDIR, fmt::format("mkdir {}", path.string()));
    return {};
}

Status remove_tree(const fs::path& path) {
    std::error_code ec;
    fs::remove_all(path, ec);
    if (!ec || ec.value() == ENOENT) return {};
    // Below a file there is nothing: ENOTDIR.
    std::error_code ignored;
    if (fs::symlink_status(path, ignored).type() == fs::file_type::not_found) return {};
    return fail_errno(ec.value(), fmt::format("remove {}", path.string()));
}

namespace {

// For pairs of file systems between which the kernel cannot copy. Advances both offsets like
// copy_file_range(2).
ssize_t copy_through_memory(int in, off_t& in_offset, int out, off_t& out_offset, off_t length) {
    char buffer[65536];
    ssize_t n = ::pread(in, buffer, std::min<std::size_t>(sizeof buffer, static_cast<std::size_t>(length)),
                        in_offset);
    if (n <= 0) return n;
    ssize_t written = ::pwrite(out, buffer, static_cast<std::size_t>(n), out_offset);
    if (written > 0) {
        in_offset += written;
        out_offset += written;
    }
    return written;
}

std::unexpected<Error> became_shorter() {
    return fail(ErrorCode::aborted, "copy: the source has become shorter");
}

}  // namespace

Status append_sparse(int in, int out) {
    struct stat from{}, to{};
    if (::fstat(in, &from) != 0 || ::fstat(out, &to) != 0) return fail_errno("stat");
    const off_t base = to.st_size;
    if (::ftruncate(out, base + from.st_size) != 0) return fail_errno("set the length");
    off_t position = 0;
    while (position < from.st_size) {
        const off_t data = ::lseek(in, position, SEEK_DATA);
        if (data < 0 && errno == ENXIO) break;  // only a hole is left
        if (data < 0) return fail_errno("seek");
        const off_t hole = ::lseek(in, data, SEEK_HOLE);
        if (hole < 0 && errno == ENXIO) return became_shorter();
        if (hole < 0) return fail_errno("seek");
        off_t in_offset = data;
        off_t out_offset = base + data;
        while (in_offset < hole) {
            ssize_t n = ::copy_file_range(in, &in_offset, out, &out_offset,
                                          static_cast<std::size_t>(hole - in_offset), 0);
            if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
                n = copy_through_memory(in, in_offset, out, out_offset, hole - in_offset);
            if (n < 0) return fail_errno("copy");
            if (n == 0) return became_shorter();
        }
        position = hole;
    }
    // What is behind the end of a file that was cut meanwhile looks like a hole of it. Without this the copy would
    // be padded with zeros, for a caller that may remove the original next.
    struct stat now{};
    if (::fstat(in, &now) != 0) return fail_errno("stat");
    if (now.st_size < from.st_size) return became_shorter();
    return {};
}

Status sync_path(const fs::path& path) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
    return ::fsync(fd.get()) == 0 ? Status() : fail_errno(fmt::format("fsync {}", path.string()));
}

Status copy_file_sparse(const fs::path& from, const fs::path& to, unsigned mode) {
    GB_TRY_ASSIGN(UniqueFd in, open_file(from, O_RDONLY));
    GB_TRY_ASSIGN(UniqueFd out, open_file(to, O_WRONLY | O_CREAT | O_TRUNC, mode));
    if (::ioctl(out.get(), FICLONE, in.get()) == 0) return {};
    if (const Status copied = append_sparse(in.get(), out.get()); !copied)
        return std::unexpected(copied.error().with(fmt::format("{} to {}", from.string(), to.string())));
    return {};
}

}  // namespace gb
