// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/users.h"

#include <algorithm>
#include <cstdio>

#include <sys/stat.h>

#include <grp.h>
#include <pwd.h>

namespace gb::agent {
namespace {

struct CloseFile {
    void operator()(FILE* file) const { ::fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

// Calls `read(buffer)` with a larger buffer until the entry fits, as the f…ent_r functions want it (ERANGE).
template <class Read>
bool read_entry(std::vector<char>& buffer, FILE* file, Read read) {
    for (;;) {
        const long start = ::ftell(file);
        const int rc = read(buffer);
        if (rc == 0) return true;
        if (rc != ERANGE || buffer.size() > (std::size_t{1} << 22)) return false;
        buffer.resize(buffer.size() * 2);
        ::fseek(file, start, SEEK_SET);
    }
}

}  // namespace

UserTable UserTable::load(const std::string& passwd_path, const std::string& group_path) {
    UserTable table;
    std::vector<char> buffer(4096);
    if (File file{::fopen(passwd_path.c_str(), "re")}) {
        passwd entry{};
        passwd* found = nullptr;
        while (read_entry(buffer, file.get(), [&](std::vector<char>& b) {
            return ::fgetpwent_r(file.get(), &entry, b.data(), b.size(), &found);
        }))
            table.users_.push_back({entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell});
    }
    if (File file{::fopen(group_path.c_str(), "re")}) {
        group entry{};
        group* found = nullptr;
        while (read_entry(buffer, file.get(), [&](std::vector<char>& b) {
            return ::fgetgrent_r(file.get(), &entry, b.data(), b.size(), &found);
        })) {
            Group& added = table.groups_.emplace_back(Group{entry.gr_name, entry.gr_gid, {}});
            for (char** member = entry.gr_mem; member != nullptr && *member != nullptr; ++member)
                added.members.emplace_back(*member);
        }
    }
    // A root file system without a passwd file (an image "from scratch") still has its first user.
    if (table.find("root") == nullptr) table.users_.push_back({"root", 0, 0, "/root", "/bin/sh"});
    return table;
}

const User* UserTable::find(std::string_view name) const {
    auto it = std::ranges::find(users_, name, &User::name);
    return it == users_.end() ? nullptr : &*it;
}

const User* UserTable::find(uid_t uid) const {
    auto it = std::ranges::find(users_, uid, &User::uid);
    return it == users_.end() ? nullptr : &*it;
}

std::string UserTable::user_name(uid_t uid) const {
    const User* user = find(uid);
    return user != nullptr ? user->name : std::to_string(uid);
}

std::string UserTable::group_name(gid_t gid) const {
    auto it = std::ranges::find(groups_, gid, &Group::gid);
    return it == groups_.end() ? std::to_string(gid) : it->name;
}

const gid_t* UserTable::find_group(std::string_view name) const {
    auto it = std::ranges::find(groups_, name, &Group::name);
    return it == groups_.end() ? nullptr : &it->gid;
}

std::vector<gid_t> UserTable::groups_of(const User& user) const {
    std::vector<gid_t> out{user.gid};
    for (const Group& group : groups_)
        if (std::ranges::find(group.members, user.name) != group.members.end() &&
            std::ranges::find(out, group.gid) == out.end())
            out.push_back(group.gid);
    return out;
}

UserCache::UserCache(const std::string& etc) : passwd_(etc + "/passwd"), group_(etc + "/group") {}

bool UserCache::Stamp::operator==(const Stamp& other) const {
    return device == other.device && inode == other.inode && size == other.size &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
}

UserCache::Stamp UserCache::stamp(const std::string& path) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return {};
    return {st.st_dev, st.st_ino, st.st_size, st.st_ctim};
}

std::shared_ptr<const UserTable> UserCache::get() {
    const Stamp passwd = stamp(passwd_);
    const Stamp group = stamp(group_);
    if (!table_ || !(passwd == seen_passwd_) || !(group == seen_group_)) {
        table_ = std::make_shared<const UserTable>(UserTable::load(passwd_, group_));
        seen_passwd_ = passwd;
        seen_group_ = group;
    }
    return table_;
}

}  // namespace gb::agent
