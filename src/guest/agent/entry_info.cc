// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/entry_info.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include <sys/xattr.h>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "guest/agent/paths.h"

namespace gb::agent {
namespace {

filesystem::FileType type_of(mode_t mode) {
    if (S_ISREG(mode)) return filesystem::FILE_TYPE_FILE;
    if (S_ISDIR(mode)) return filesystem::FILE_TYPE_DIRECTORY;
    if (S_ISLNK(mode)) return filesystem::FILE_TYPE_SYMLINK;
    return filesystem::FILE_TYPE_UNSPECIFIED;
}

// The text of a link made absolute, for one that leads nowhere.
std::string raw_target(const std::string& path) {
    std::string text(PATH_MAX, '\0');
    const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
    if (n < 0) return path;
    text.resize(static_cast<std::size_t>(n));
    return text.starts_with('/') ? clean_path(text) : clean_path(join_path(parent_path(path), text));
}

void describe_link(const std::string& path, filesystem::EntryInfo& entry) {
    struct CFree {
        void operator()(char* text) const { ::free(text); }
    };
    const std::unique_ptr<char, CFree> target(::realpath(path.c_str(), nullptr));
    struct stat st{};
    if (target && ::stat(target.get(), &st) == 0) {
        entry.set_symlink_target(to_utf8(target.get()));
        entry.set_type(type_of(st.st_mode));
        entry.set_mode(st.st_mode & 0777);
    } else {
        entry.set_symlink_target(to_utf8(raw_target(path)));
        entry.set_type(filesystem::FILE_TYPE_UNSPECIFIED);
    }
}

// Messages know the years 1 to 9999 and cannot be written as JSON with any other; files can be from any.
void set_time(google::protobuf::Timestamp& out, const timespec& time) {
    using google::protobuf::util::TimeUtil;
    const auto seconds =
        std::clamp<std::int64_t>(time.tv_sec, TimeUtil::kTimestampMinSeconds, TimeUtil::kTimestampMaxSeconds);
    out.set_seconds(seconds);
    out.set_nanos(seconds == time.tv_sec ? static_cast<std::int32_t>(time.tv_nsec) : 0);
}

}  // namespace

std::string permission_text(mode_t mode) {
    std::string out;
    if (S_ISDIR(mode)) out += 'd';
    if (S_ISLNK(mode)) out += 'L';
    if (S_ISBLK(mode) || S_ISCHR(mode)) out += 'D';
    if (S_ISFIFO(mode)) out += 'p';
    if (S_ISSOCK(mode)) out += 'S';
    if ((mode & S_ISUID) != 0) out += 'u';
    if ((mode & S_ISGID) != 0) out += 'g';
    if (S_ISCHR(mode)) out += 'c';
    if ((mode & S_ISVTX) != 0) out += 't';
    if (out.empty()) out = "-";
    constexpr std::string_view kBits = "rwxrwxrwx";
    for (std::size_t i = 0; i < kBits.size(); ++i) out += (mode & (0400U >> i)) != 0 ? kBits[i] : '-';
    return out;
}

Result<filesystem::EntryInfo> entry_info(const std::string& path, const UserTable& users) {
    struct stat st{};
    if (::lstat(path.c_str(), &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return fail(ErrorCode::not_found, fmt::format("path '{}' does not exist", path));
        return fail_errno(fmt::format("stat '{}'", path));
    }
    filesystem::EntryInfo entry;
    entry.set_name(to_utf8(base_name(path)));
    entry.set_path(to_utf8(path));
    entry.set_type(type_of(st.st_mode));
    entry.set_size(st.st_size);
    entry.set_mode(st.st_mode & 0777);
    entry.set_permissions(permission_text(st.st_mode));
    entry.set_owner(to_utf8(users.user_name(st.st_uid)));
    entry.set_group(to_utf8(users.group_name(st.st_gid)));
    set_time(*entry.mutable_modified_time(), st.st_mtim);
    if (S_ISLNK(st.st_mode)) describe_link(path, entry);
    for (auto& [key, value] : read_metadata(path)) (*entry.mutable_metadata())[key] = value;
    return entry;
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
    std::map<std::string, std::string> out;
    // Nearly every file has none: ask without a buffer first.
    const ssize_t size = ::listxattr(path.c_str(), nullptr, 0);
    if (size <= 0) return out;
    std::vector<char> names(static_cast<std::size_t>(size));
    const ssize_t got = ::listxattr(path.c_str(), names.data(), names.size());
    if (got <= 0) return out;
    std::string_view rest(names.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
        const std::string name(rest.substr(0, rest.find('\0')));
        rest.remove_prefix(std::min(rest.size(), name.size() + 1));
        if (!name.starts_with(kMetadataPrefix)) continue;
        std::string value(65536, '\0');  // the kernel's limit for one value
        const ssize_t n = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
        if (n < 0) continue;
        value.resize(static_cast<std::size_t>(n));
        out[to_utf8(name.substr(kMetadataPrefix.size()))] = to_utf8(value);
    }
    return out;
}

}  // namespace gb::agent
