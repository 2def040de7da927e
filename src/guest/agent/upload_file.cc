// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/upload_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include <sys/stat.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/agent/entry_info.h"
#include "guest/agent/file_source.h"
#include "guest/agent/folders.h"
#include "guest/agent/paths.h"
#include "guest/agent/temporary_name.h"

namespace gb::agent {
namespace {

// Where writing through the links at `path` ends up, also when the last one leads to a file that is not there
// yet.
std::string follow_links(const std::string& path) {
    struct CFree {
        void operator()(char* text) const { ::free(text); }
    };
    std::string current = path;
    for (int hops = 0; hops < 40; ++hops) {
        if (const std::unique_ptr<char, CFree> real(::realpath(current.c_str(), nullptr)); real)
            return real.get();
        char text[PATH_MAX];
        const ssize_t n = ::readlink(current.c_str(), text, sizeof text);
        if (n <= 0) return current;
        const std::string_view link(text, static_cast<std::size_t>(n));
        current =
            link.starts_with('/') ? clean_path(link) : clean_path(join_path(parent_path(current), link));
    }
    return current;
}

}  // namespace

UploadFile::UploadFile(UploadFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      nameless_(other.nameless_),
      fd_(std::move(other.fd_)),
      uid_(other.uid_),
      gid_(other.gid_),
      mode_(other.mode_) {}

UploadFile::~UploadFile() {
    if (!temporary_.empty() && !nameless_) ::unlink(temporary_.c_str());
}

Result<UploadFile> UploadFile::create(const std::string& path, const User& owner) {
    UploadFile file(path, owner);
    file.target_ = follow_links(path);
    struct stat st{};
    const bool exists = ::stat(file.target_.c_str(), &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path is a directory: {}", path));
    if (exists && !S_ISREG(st.st_mode)) {
        GB_TRY(file.open_in_place(false));
        return file;
    }
    if (exists) file.mode_ = st.st_mode & 0777;
    const std::string folder(parent_path(file.target_));
    if (auto made = make_folders(folder, owner); !made) return std::unexpected(made.error());
    file.temporary_ = join_path(folder, temporary_name(!exists));
    const Status opened = file.open_unfinished(folder);
    if (opened) return file;
    file.temporary_.clear();
    if (!exists) return std::unexpected(opened.error().with(fmt::format("write '{}'", path)));
    GB_TRY(file.open_in_place(true));  // a file system that makes no new files, such as /proc
    return file;
}

// A file without a name cannot be seen, and the kernel removes it whatever ends the upload.
Status UploadFile::open_unfinished(const std::string& folder) {
    fd_.reset(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    nameless_ = fd_.valid();
    if (nameless_) return {};
    GB_TRY_ASSIGN(fd_, open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL, 0600));
    return {};
}

Status UploadFile::open_in_place(bool truncate) {
    // Without O_NONBLOCK a pipe that nobody reads would hold up the agent.
    fd_.reset(
        ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (truncate ? O_TRUNC : 0)));
    if (!fd_) return fail_errno(fmt::format("write '{}'", path_));
    return {};
}

Status UploadFile::write(std::string_view data) {
    if (const Status written = write_all(fd_.get(), data); !written) {
        if (written.error().code == ErrorCode::no_space)
            return fail(ErrorCode::no_space, fmt::format("not enough disk space to write '{}'", path_));
        return std::unexpected(written.error().with(fmt::format("'{}'", path_)));
    }
    return {};
}

Status UploadFile::append_file(const std::string& source) {
    GB_TRY_ASSIGN(const FileSource from, FileSource::open(source));
    const Status copied = append_readable(from, fd_.get());
    if (copied) return {};
    if (copied.error().code == ErrorCode::no_space)
        return fail(ErrorCode::no_space, fmt::format("not enough disk space to write '{}'", path_));
    return std::unexpected(copied.error().with(fmt::format("'{}' to '{}'", source, path_)));
}

// Opened again under the temporary name: what is changed through that descriptor is reported to watchers
// under that name, which they know to be none of their business.
Status UploadFile::give_name() {
    if (!nameless_) return {};
    const std::string what = fmt::format("write '{}'", path_);
    const std::string link = fmt::format("/proc/self/fd/{}", fd_.get());
    if (::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
        return fail_errno(what);
    nameless_ = false;
    GB_TRY_ASSIGN(UniqueFd named, open_file(temporary_, O_WRONLY | O_NOFOLLOW | O_NONBLOCK));
    struct stat mine{}, found{};
    if (::fstat(fd_.get(), &mine) != 0 || ::fstat(named.get(), &found) != 0) return fail_errno(what);
    if (mine.st_ino != found.st_ino || mine.st_dev != found.st_dev)
        return fail(ErrorCode::aborted, what + ": something else took the place of the new file");
    fd_ = std::move(named);
    return {};
}

Status UploadFile::set_metadata(const Metadata& metadata) {
    if (temporary_.empty())
        for (const auto& [key, value] : read_metadata(target_))
            ::fremovexattr(fd_.get(), (std::string(kMetadataPrefix) + key).c_str());
    for (const auto& [key, value] : metadata) {
        const std::string name = std::string(kMetadataPrefix) + key;
        if (::fsetxattr(fd_.get(), name.c_str(), value.data(), value.size(), 0) == 0) continue;
        if (errno == ENOTSUP || errno == EPERM)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("'{}' is on a file system without metadata", path_));
        return fail(ErrorCode::invalid_argument,
                    fmt::format("metadata key '{}' does not fit: {}", key,
                                Error::from_errno(errno, "set attribute").message));
    }
    return {};
}

Status UploadFile::commit(const Metadata& metadata) {
    GB_TRY(give_name());
    GB_TRY(set_metadata(metadata));
    if (temporary_.empty()) return {};
    // First the owner: changing it clears the set-id bits.
    if (::fchown(fd_.get(), uid_, gid_) != 0 && ::geteuid() == 0)
        return fail_errno(fmt::format("change the owner of '{}'", path_));
    if (::fchmod(fd_.get(), mode_) != 0) return fail_errno(fmt::format("change the mode of '{}'", path_));
    return replace();
}

Status UploadFile::replace() {
    if (::rename(temporary_.c_str(), target_.c_str()) == 0) {
        temporary_.clear();
        return {};
    }
    if (errno != EBUSY) return fail_errno(fmt::format("write '{}'", path_));
    // A file that is a mount point (/etc/hosts in a container) cannot be replaced, only rewritten.
    GB_TRY_ASSIGN(const UniqueFd from, open_file(temporary_, O_RDONLY));
    GB_TRY_ASSIGN(const UniqueFd to, open_file(target_, O_WRONLY | O_TRUNC));
    return append_sparse(from.get(), to.get());
}

}  // namespace gb::agent
