// SPDX-License-Identifier: Apache-2.0
// What happens in a folder, and below it if asked: inotify, made into the contract's events (3.4). One event
// an operation, as fsnotify has them; a rename is a RENAME of the old name and a CREATE of the new one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "proto/filesystem.pb.h"

struct inotify_event;

namespace gb::agent {

struct WatchEvent {
    std::string
        name;  // relative to the watched folder, "." for the folder itself; bytes as the disk has them
    filesystem::EventType type;
};

struct WatchOptions {
    bool recursive = false;
    // Changes that another machine makes are not seen there, so it must be asked for.
    bool allow_network_mounts = false;
};

// Blocks for as long as it takes to walk the tree.
class FolderWatch {
  public:
    // `path` is absolute. not_found; invalid_argument for what is no folder or is on a network mount;
    // resource_exhausted when the kernel allows no more watches.
    static Result<FolderWatch> open(const std::string& path, WatchOptions options);

    FolderWatch(FolderWatch&&) = default;
    FolderWatch& operator=(FolderWatch&&) = default;
    ~FolderWatch() = default;

    // Readable when there is something to read().
    [[nodiscard]] int fd() const { return inotify_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }

    // What has happened since the last call, without waiting; at most a few hundred events at once, and none
    // when there are none. data_loss once events were lost: the watch is of no more use.
    Result<std::vector<WatchEvent>> read();
    // The folder is gone; no event will follow.
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    struct Folder {
        int parent = -1;  // descriptor of the parent's watch
        std::string name;
    };
    using Place = std::pair<int, std::string>;  // name in a watched folder
    struct Move {
        int descriptor = -1;  // of a watched folder that was moved, until it turns up again
        // The agent's own: a complete file gets its name. False when it replaces one.
        std::optional<bool> completes_new_file;
    };

    FolderWatch(std::string path, WatchOptions options, UniqueFd inotify)
        : path_(std::move(path)), options_(options), inotify_(std::move(inotify)) {}

    Status add_root();
    // Watches the folder and all below it. With `found`, what is in them already counts as just made.
    Status add_tree(int parent, const std::string& name, std::vector<WatchEvent>* found);
    Status walk(int descriptor, const std::string& relative, std::vector<WatchEvent>* found);
    Result<int> add_watch(const std::string& path);
    void handle(const inotify_event& event, std::string_view name, std::vector<WatchEvent>& out);
    void handle_self(const inotify_event& event, std::vector<WatchEvent>& out);
    void handle_entry(const inotify_event& event, const std::string& name, std::vector<WatchEvent>& out);
    void moved_from(std::uint32_t cookie, const Place& place, const std::string& full,
                    std::vector<WatchEvent>& out);
    void moved_to(std::uint32_t cookie, bool is_folder, const Place& place, const std::string& full,
                  std::vector<WatchEvent>& out);
    void queue_is_empty();
    void forget_tree(int descriptor);
    void fail_with(Error error);
    [[nodiscard]] std::optional<std::string> relative(int descriptor) const;
    [[nodiscard]] std::string absolute(std::string_view relative_name) const;

    std::string path_;
    WatchOptions options_;
    UniqueFd inotify_;
    int root_ = -1;
    std::unordered_map<int, Folder> folders_;  // by watch descriptor
    std::map<Place, int> by_place_;
    std::unordered_map<std::uint32_t, Move> moves_;  // by cookie
    // Reported by a walk of a new folder; the kernel may report their creation too.
    std::set<Place> walked_;
    std::optional<Error> failure_;
    bool ended_ = false;
};

}  // namespace gb::agent
