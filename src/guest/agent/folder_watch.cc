// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/folder_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/unique_dir.h"
#include "guest/agent/folders.h"
#include "guest/agent/paths.h"
#include "guest/agent/temporary_name.h"

namespace gb::agent {
namespace {

using namespace filesystem;

// A file that is open but has no name (any more) is nobody's business: IN_EXCL_UNLINK.
constexpr std::uint32_t kMask = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |
                                IN_DELETE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

// linux/magic.h does not have all of them.
constexpr std::uint32_t kCifs = 0xFF534D42, kSmb2 = 0xFE534D42, kFuse = 0x65735546, kLustre = 0x0BD00BD0,
                        kCeph = 0x00C36400, kBeegfs = 0x19830326, kGpfs = 0x47504653;
constexpr std::array kNetwork{std::uint32_t{NFS_SUPER_MAGIC},
                              std::uint32_t{SMB_SUPER_MAGIC},
                              std::uint32_t{V9FS_MAGIC},
                              std::uint32_t{CODA_SUPER_MAGIC},
                              std::uint32_t{AFS_SUPER_MAGIC},
                              std::uint32_t{AFS_FS_MAGIC},
                              kCifs,
                              kSmb2,
                              kFuse,
                              kLustre,
                              kCeph,
                              kBeegfs,
                              kGpfs};
// The kernel's own trees: they tell of no changes, and some have no end.
constexpr std::array kKernel{std::uint32_t{PROC_SUPER_MAGIC},   std::uint32_t{SYSFS_MAGIC},
                             std::uint32_t{CGROUP_SUPER_MAGIC}, std::uint32_t{CGROUP2_SUPER_MAGIC},
                             std::uint32_t{DEBUGFS_MAGIC},      std::uint32_t{TRACEFS_MAGIC},
                             std::uint32_t{DEVPTS_SUPER_MAGIC}};

std::uint32_t file_system(const std::string& path) {
    struct statfs info{};
    return ::statfs(path.c_str(), &info) == 0 ? static_cast<std::uint32_t>(info.f_type) : 0;
}

bool is_one_of(std::uint32_t type, const auto& types) {
    return std::ranges::find(types, type) != types.end();
}

bool is_gone(int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES || error == ENAMETOOLONG;
}

std::string join_relative(const std::string& folder, const std::string& name) {
    return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

Result<FolderWatch> FolderWatch::open(const std::string& path, WatchOptions options) {
    GB_TRY(check_folder(path));
    UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!inotify && (errno == EMFILE || errno == ENFILE))
        return fail(ErrorCode::resource_exhausted,
                    "too many watchers (fs.inotify.max_user_instances): remove some of them");
    if (!inotify) return fail_errno("inotify");
    FolderWatch watch(path, options, std::move(inotify));
    GB_TRY(watch.add_root());
    return watch;
}

Status FolderWatch::add_root() {
    if (!options_.allow_network_mounts && is_one_of(file_system(path_), kNetwork))
        return fail(ErrorCode::invalid_argument,
                    fmt::format("path '{}' is on a network file system, where changes that others make are "
                                "not seen: allow network mounts to watch it all the same",
                                path_));
    root_ = ::inotify_add_watch(inotify_.get(), path_.c_str(), kMask | IN_MOVE_SELF);
    if (root_ < 0) return fail_errno(fmt::format("watch '{}'", path_));
    folders_[root_] = {};
    return options_.recursive ? walk(root_, "", nullptr) : Status{};
}

// -1 for a folder that is not there any more.
Result<int> FolderWatch::add_watch(const std::string& path) {
    const std::uint32_t type = file_system(path);
    if (is_one_of(type, kKernel)) return -1;
    if (!options_.allow_network_mounts && is_one_of(type, kNetwork))
        return fail(ErrorCode::invalid_argument,
                    fmt::format("'{}' is on a network file system, where changes that others make are not "
                                "seen: allow network mounts, or do not watch recursively",
                                path));
    const int descriptor = ::inotify_add_watch(inotify_.get(), path.c_str(), kMask | IN_DONT_FOLLOW);
    if (descriptor >= 0) return descriptor;
    if (is_gone(errno)) return -1;
    if (errno == ENOSPC)
        return fail(ErrorCode::resource_exhausted,
                    fmt::format("too many directories below '{}' (fs.inotify.max_user_watches)", path_));
    return fail_errno(fmt::format("watch '{}'", path));
}

Status FolderWatch::add_tree(int parent, const std::string& name, std::vector<WatchEvent>* found) {
    const std::optional<std::string> above = relative(parent);
    if (!above) return {};
    const std::string below = join_relative(*above, name);
    GB_TRY_ASSIGN(const int descriptor, add_watch(absolute(below)));
    if (descriptor < 0 || descriptor == root_) return {};
    // The kernel knows a folder by what it is, not by its name: it may have been moved here.
    if (const auto known = folders_.find(descriptor); known != folders_.end())
        by_place_.erase({known->second.parent, known->second.name});
    folders_[descriptor] = {parent, name};
    by_place_[{parent, name}] = descriptor;
    // Watched first and read afterwards, so nothing falls in between.
    return walk(descriptor, below, found);
}

Status FolderWatch::walk(int descriptor, const std::string& relative, std::vector<WatchEvent>* found) {
    const std::string folder = absolute(relative);
    const UniqueDir dir(::opendir(folder.c_str()));
    if (!dir) return is_gone(errno) ? Status{} : fail_errno(fmt::format("list '{}'", folder));
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string name = entry->d_name;
        if (name == "." || name == ".." || is_temporary(name)) continue;
        struct stat st{};
        if (found == nullptr && entry->d_type != DT_UNKNOWN)
            st.st_mode = DTTOIF(entry->d_type);
        else if (::lstat(join_path(folder, name).c_str(), &st) != 0)
            continue;
        if (found != nullptr) {
            const std::string below = join_relative(relative, name);
            found->push_back({below, EVENT_TYPE_CREATE});
            if (S_ISREG(st.st_mode) && st.st_size > 0) found->push_back({below, EVENT_TYPE_WRITE});
            walked_.insert({descriptor, name});
        }
        if (S_ISDIR(st.st_mode)) GB_TRY(add_tree(descriptor, name, found));
    }
    return {};
}

Result<std::vector<WatchEvent>> FolderWatch::read() {
    if (failure_) return std::unexpected(*failure_);
    alignas(inotify_event) std::array<char, 16 * 1024> buffer;
    std::vector<WatchEvent> out;
    // Some batches hold nothing for the client; so go on until there is something, or nothing at all.
    while (out.empty() && !failure_) {
        const ssize_t n = ::read(inotify_.get(), buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN) return fail_errno("read inotify events");
        if (n <= 0) {
            queue_is_empty();
            break;
        }
        for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
            inotify_event event{};
            std::memcpy(&event, buffer.data() + at, sizeof event);
            const char* name = buffer.data() + at + sizeof event;
            handle(event, std::string_view(name, ::strnlen(name, event.len)), out);
            at += sizeof event + event.len;
        }
    }
    if (out.empty() && failure_) return std::unexpected(*failure_);
    return out;
}

void FolderWatch::handle(const inotify_event& event, std::string_view name, std::vector<WatchEvent>& out) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
        fail_with({ErrorCode::data_loss,
                   fmt::format("changes in '{}' came faster than they were read and some are lost: list the "
                               "directory and watch it anew",
                               path_)});
        return;
    }
    if ((event.mask & IN_IGNORED) != 0) {
        if (event.wd == root_) ended_ = true;
        forget_tree(event.wd);
        return;
    }
    if (!folders_.contains(event.wd)) return;
    if (name.empty())
        handle_self(event, out);
    else
        handle_entry(event, std::string(name), out);
}

void FolderWatch::handle_self(const inotify_event& event, std::vector<WatchEvent>& out) {
    if (event.wd != root_) return;  // its parent is watched too, and tells
    if ((event.mask & IN_ATTRIB) != 0) out.push_back({".", EVENT_TYPE_CHMOD});
    if ((event.mask & IN_MOVE_SELF) != 0) out.push_back({".", EVENT_TYPE_RENAME});
    if ((event.mask & (IN_DELETE_SELF | IN_UNMOUNT)) != 0) out.push_back({".", EVENT_TYPE_REMOVE});
    if ((event.mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) != 0) ended_ = true;
}

void FolderWatch::handle_entry(const inotify_event& event, const std::string& name,
                               std::vector<WatchEvent>& out) {
    const std::optional<std::string> folder = relative(event.wd);
    if (!folder) return;
    const std::string full = join_relative(*folder, name);
    const Place place{event.wd, name};
    if ((event.mask & IN_MOVED_FROM) != 0) return moved_from(event.cookie, place, full, out);
    if (is_temporary(name)) return;
    if ((event.mask & IN_MOVED_TO) != 0)
        return moved_to(event.cookie, (event.mask & IN_ISDIR) != 0, place, full, out);
    if ((event.mask & IN_CREATE) != 0) {
        if (walked_.erase(place) > 0) return;
        out.push_back({full, EVENT_TYPE_CREATE});
        if (options_.recursive && (event.mask & IN_ISDIR) != 0)
            if (const Status added = add_tree(event.wd, name, &out); !added) fail_with(added.error());
    }
    if ((event.mask & IN_DELETE) != 0) {
        walked_.erase(place);
        out.push_back({full, EVENT_TYPE_REMOVE});
    }
    // Programs write in many small pieces; as the kernel does in its own queue, one event stands for a run.
    const auto add_once = [&](EventType type) {
        if (out.empty() || out.back().type != type || out.back().name != full) out.push_back({full, type});
    };
    if ((event.mask & IN_MODIFY) != 0) add_once(EVENT_TYPE_WRITE);
    if ((event.mask & IN_ATTRIB) != 0) add_once(EVENT_TYPE_CHMOD);
}

void FolderWatch::moved_from(std::uint32_t cookie, const Place& place, const std::string& full,
                             std::vector<WatchEvent>& out) {
    Move& move = moves_[cookie];
    if (is_temporary(place.second)) {
        move.completes_new_file = temporary_is_new(place.second);
        return;
    }
    walked_.erase(place);
    out.push_back({full, EVENT_TYPE_RENAME});
    if (const auto folder = by_place_.find(place); folder != by_place_.end()) {
        move.descriptor = folder->second;
        folders_[folder->second].parent = -1;
        by_place_.erase(folder);
    }
}

void FolderWatch::moved_to(std::uint32_t cookie, bool is_folder, const Place& place, const std::string& full,
                           std::vector<WatchEvent>& out) {
    const auto node = moves_.extract(cookie);
    const Move move = node.empty() ? Move{} : node.mapped();
    const bool reported = walked_.erase(place) > 0;
    if (!reported && move.completes_new_file.value_or(true)) out.push_back({full, EVENT_TYPE_CREATE});
    if (move.completes_new_file) {
        // To the outside, however it is done, an upload makes a file, gives it to its owner and writes it.
        if (*move.completes_new_file) out.push_back({full, EVENT_TYPE_CHMOD});
        out.push_back({full, EVENT_TYPE_WRITE});
    } else if (move.descriptor >= 0 && folders_.contains(move.descriptor)) {
        folders_[move.descriptor] = {place.first, place.second};
        by_place_[place] = move.descriptor;
    } else if (options_.recursive && is_folder) {
        if (const Status added = add_tree(place.first, place.second, &out); !added) fail_with(added.error());
    }
}

// Everything that happened up to now has been handled: what was moved away and has not turned up again is
// outside.
void FolderWatch::queue_is_empty() {
    walked_.clear();
    const auto moves = std::move(moves_);
    moves_.clear();
    for (const auto& [cookie, move] : moves)
        if (move.descriptor >= 0) forget_tree(move.descriptor);
}

void FolderWatch::forget_tree(int descriptor) {
    const auto folder = folders_.find(descriptor);
    if (folder == folders_.end()) return;
    const auto at = by_place_.find({folder->second.parent, folder->second.name});
    if (at != by_place_.end() && at->second == descriptor) by_place_.erase(at);
    folders_.erase(folder);
    ::inotify_rm_watch(inotify_.get(), descriptor);  // fails for one that the kernel has dropped itself
    std::vector<int> below;
    for (auto it = by_place_.lower_bound({descriptor, ""});
         it != by_place_.end() && it->first.first == descriptor; ++it)
        below.push_back(it->second);
    for (const int child : below) forget_tree(child);
}

void FolderWatch::fail_with(Error error) {
    if (!failure_) failure_ = std::move(error);
}

std::optional<std::string> FolderWatch::relative(int descriptor) const {
    std::string out;
    while (descriptor != root_) {
        const auto folder = folders_.find(descriptor);
        if (folder == folders_.end()) return std::nullopt;  // in the middle of a move
        out = out.empty() ? folder->second.name : folder->second.name + "/" + out;
        descriptor = folder->second.parent;
    }
    return out;
}

std::string FolderWatch::absolute(std::string_view relative_name) const {
    return relative_name.empty() ? path_ : join_path(path_, relative_name);
}

}  // namespace gb::agent
