// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/folders.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unique_dir.h"
#include "guest/agent/entry_info.h"
#include "guest/agent/file_source.h"
#include "guest/agent/paths.h"
#include "guest/agent/temporary_name.h"

namespace gb::agent {
namespace {

// More would not fit into one answer that a client can use.
constexpr std::size_t kMaxEntries = 500'000;

Result<std::vector<std::string>> names_in(const std::string& path) {
    const UniqueDir dir(::opendir(path.c_str()));
    if (!dir) return fail_errno(fmt::format("list '{}'", path));
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    std::ranges::sort(names);
    return names;
}

Status walk(const std::string& path, std::uint32_t depth, const UserTable& users,
            std::vector<filesystem::EntryInfo>& out) {
    GB_TRY_ASSIGN(const std::vector<std::string> names, names_in(path));
    for (const std::string& name : names) {
        const std::string child = join_path(path, name);
        auto entry = entry_info(child, users);
        if (!entry) continue;  // gone since it was listed
        if (out.size() >= kMaxEntries)
            return fail(
                ErrorCode::resource_exhausted,
                fmt::format("more than {} entries below '{}': list with a smaller depth", kMaxEntries, path));
        const bool enter = entry->type() == filesystem::FILE_TYPE_DIRECTORY && !entry->has_symlink_target();
        out.push_back(*std::move(entry));
        if (enter && depth > 1) {
            const Status walked = walk(child, depth - 1, users, out);
            if (!walked && walked.error().code == ErrorCode::resource_exhausted) return walked;
        }
    }
    return {};
}

}  // namespace

Result<bool> make_folders(const std::string& path, const User& owner) {
    struct stat st{};
    if (::stat(path.c_str(), &st) == 0) {
        if (S_ISDIR(st.st_mode)) return false;
        return fail(ErrorCode::invalid_argument,
                    fmt::format("path '{}' exists and is not a directory", path));
    }
    if (errno == ENOTDIR)
        return fail(ErrorCode::invalid_argument, fmt::format("a parent of '{}' is not a directory", path));
    if (errno != ENOENT) return fail_errno(fmt::format("stat '{}'", path));
    if (path != "/") GB_TRY(make_folders(std::string(parent_path(path)), owner));
    if (::mkdir(path.c_str(), 0755) != 0) {
        if (errno == EEXIST && ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
            return false;  // somebody else
        return fail_errno(fmt::format("make directory '{}'", path));
    }
    // Best effort outside of root, where files are the agent's own user's anyway.
    if (::lchown(path.c_str(), owner.uid, owner.gid) != 0 && ::geteuid() == 0)
        return fail_errno(fmt::format("change the owner of '{}'", path));
    return true;
}

Status check_folder(const std::string& path) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return fail(ErrorCode::not_found, fmt::format("path '{}' does not exist", path));
        return fail_errno(fmt::format("stat '{}'", path));
    }
    if (!S_ISDIR(st.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is not a directory", path));
    return {};
}

Result<std::vector<filesystem::EntryInfo>> list_folder(const std::string& path, std::uint32_t depth,
                                                       const UserTable& users) {
    GB_TRY(check_folder(path));
    std::vector<filesystem::EntryInfo> out;
    GB_TRY(walk(path, std::max(depth, 1U), users, out));
    return out;
}

namespace {

// The original is removed afterwards, so what stat says about its length is believed only of a local file system.
Status copy_whole(const std::string& source, const std::string& copy, unsigned mode) {
    GB_TRY_ASSIGN(const FileSource from, FileSource::open(source));
    if (from.lengths == Lengths::exact) return copy_file_sparse(source, copy, mode);
    GB_TRY_ASSIGN(const UniqueFd to, open_file(copy, O_WRONLY | O_CREAT | O_TRUNC, mode));
    return append_readable(from, to.get());
}

}  // namespace

Status move_entry(const std::string& source, const std::string& destination, const User& owner) {
    struct stat st{};
    if (::lstat(source.c_str(), &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return fail(ErrorCode::not_found, fmt::format("source path '{}' does not exist", source));
        return fail_errno(fmt::format("stat '{}'", source));
    }
    if (auto made = make_folders(std::string(parent_path(destination)), owner); !made)
        return std::unexpected(made.error());
    if (::rename(source.c_str(), destination.c_str()) == 0) return {};
    const int error = errno;
    const std::string what = fmt::format("move '{}' to '{}'", source, destination);
    if (error == ENOTEMPTY || error == EEXIST)
        return fail(ErrorCode::already_exists, what + ": the destination is a directory that is not empty");
    if (error != EXDEV) return fail_errno(error, what);
    if (!S_ISREG(st.st_mode))
        return fail(ErrorCode::failed_precondition, what + ": they are on different file systems");
    struct stat there{};
    const bool is_new = ::lstat(destination.c_str(), &there) != 0;
    const std::string temporary = join_path(parent_path(destination), temporary_name(is_new));
    const auto copy = [&]() -> Status {
        GB_TRY(copy_whole(source, temporary, st.st_mode & 07777));
        if (::lchown(temporary.c_str(), st.st_uid, st.st_gid) != 0) return fail_errno(what);
        if (::chmod(temporary.c_str(), st.st_mode & 07777) != 0) return fail_errno(what);
        if (::rename(temporary.c_str(), destination.c_str()) != 0) return fail_errno(what);
        if (::unlink(source.c_str()) != 0) return fail_errno(what);
        return {};
    };
    const Status copied = copy();
    if (!copied) ::unlink(temporary.c_str());
    return copied;
}

}  // namespace gb::agent
