// SPDX-License-Identifier: Apache-2.0
// A watch whose events wait until a client asks for them.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "guest/agent/folder_watch.h"
#include "guest/agent/notifier.h"
#include "guest/agent/users.h"

namespace gb::agent {

// One event as clients get it; with what is there now under that name, if asked and if it is still there.
filesystem::FilesystemEvent watch_message(const FolderWatch& watch, const WatchEvent& event,
                                          bool include_entry, UserCache& users);

class PolledWatcher : public std::enable_shared_from_this<PolledWatcher> {
  public:
    PolledWatcher(const asio::any_io_executor& executor, FolderWatch watch, bool include_entry,
                  UserCache& users);

    ~PolledWatcher();
    PolledWatcher(const PolledWatcher&) = delete;
    PolledWatcher& operator=(const PolledWatcher&) = delete;

    // Starts to take events from the kernel as they come: new folders must be watched at once.
    void begin();
    void stop();  // take() must not be called any more
    // All that has happened since the last call. After that the error that ended the watch, if one did:
    // data_loss when so many events were not fetched that some had to be dropped.
    Result<std::vector<filesystem::FilesystemEvent>> take();

  private:
    static awaitable<void> run(std::shared_ptr<PolledWatcher> self);
    void pull();

    asio::any_io_executor executor_;
    FolderWatch watch_;
    asio::posix::stream_descriptor readable_;  // borrows the watch's descriptor
    bool include_entry_;
    UserCache& users_;
    std::deque<filesystem::FilesystemEvent> events_;
    std::optional<Error> failure_;
};

}  // namespace gb::agent
