// SPDX-License-Identifier: Apache-2.0
// The watching methods of filesystem.Filesystem (contract 3.4): a stream, and the same for clients that poll.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/thread_pool.hpp>

#include "guest/agent/caller.h"
#include "guest/agent/rpc.h"
#include "guest/agent/settings.h"
#include "proto/filesystem.pb.h"

namespace gb::agent {

class PolledWatcher;

class WatchService {
  public:
    // All of them must outlive the service.
    WatchService(const Settings& settings, UserCache& users, boost::asio::thread_pool& pool)
        : settings_(settings), users_(users), pool_(pool) {}
    ~WatchService();  // ends the polled watchers
    WatchService(const WatchService&) = delete;
    WatchService& operator=(const WatchService&) = delete;

    // Answers a call of `method`; false when there is no such method here.
    awaitable<bool> serve(Exchange& exchange, std::string_view method);

  private:
    awaitable<Status> watch_dir(StreamWriter& writer, const filesystem::WatchDirRequest& request);
    awaitable<Result<filesystem::CreateWatcherResponse>> create_watcher(
        const Exchange& exchange, const filesystem::CreateWatcherRequest& request);
    Result<filesystem::GetWatcherEventsResponse> get_watcher_events(
        const filesystem::GetWatcherEventsRequest& request);
    Result<filesystem::RemoveWatcherResponse> remove_watcher(const filesystem::RemoveWatcherRequest& request);

    const Settings& settings_;
    UserCache& users_;
    boost::asio::thread_pool& pool_;
    std::map<std::string, std::shared_ptr<PolledWatcher>> watchers_;
};

}  // namespace gb::agent
