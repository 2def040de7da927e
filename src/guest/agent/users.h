// SPDX-License-Identifier: Apache-2.0
// Users and groups of the sandbox, read from /etc/passwd and /etc/group by hand: the agent is static, and
// glibc's own look-up would load NSS modules at run time.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gb::agent {

struct User {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::string home;
    std::string shell;
};

class UserTable {
  public:
    static UserTable load(const std::string& passwd_path, const std::string& group_path);

    [[nodiscard]] const User* find(std::string_view name) const;  // null if there is none
    [[nodiscard]] const User* find(uid_t uid) const;
    [[nodiscard]] std::string user_name(uid_t uid) const;   // the number as text if nobody has it
    [[nodiscard]] std::string group_name(gid_t gid) const;  // likewise
    // The group ids that a login of this user gets: its own first, then every group that lists it.
    [[nodiscard]] std::vector<gid_t> groups_of(const User& user) const;
    [[nodiscard]] const gid_t* find_group(std::string_view name) const;

  private:
    struct Group {
        std::string name;
        gid_t gid = 0;
        std::vector<std::string> members;
    };
    std::vector<User> users_;
    std::vector<Group> groups_;
};

// The table, read again when one of the two files has changed (useradd in a running sandbox).
class UserCache {
  public:
    explicit UserCache(const std::string& etc = "/etc");
    // Shared, because work on another thread may outlive the next change.
    std::shared_ptr<const UserTable> get();

  private:
    struct Stamp {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = -1;
        timespec changed{0, 0};
        bool operator==(const Stamp& other) const;
    };
    static Stamp stamp(const std::string& path);

    std::string passwd_, group_;
    Stamp seen_passwd_, seen_group_;
    std::shared_ptr<const UserTable> table_;
};

}  // namespace gb::agent
