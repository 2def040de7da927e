// SPDX-License-Identifier: Apache-2.0
// filesystem.Filesystem (contract 3.4).
#pragma once

#include <string_view>

#include <boost/asio/thread_pool.hpp>

#include "guest/agent/caller.h"
#include "guest/agent/rpc.h"
#include "guest/agent/settings.h"
#include "guest/agent/telemetry_log.h"
#include "proto/filesystem.pb.h"

namespace gb::agent {

class FilesystemService {
  public:
    // All of them must outlive the service.
    FilesystemService(const Settings& settings, UserCache& users, boost::asio::thread_pool& pool,
                      TelemetryLog& log)
        : settings_(settings), users_(users), pool_(pool), log_(log) {}

    // Answers a call of `method`; false when there is no such method.
    awaitable<bool> serve(Exchange& exchange, std::string_view method);

  private:
    template <class Response>
    using Answer = awaitable<Result<Response>>;

    Answer<filesystem::StatResponse> stat(const Exchange& exchange, const filesystem::StatRequest& request);
    Answer<filesystem::MakeDirResponse> make_dir(const Exchange& exchange,
                                                 const filesystem::MakeDirRequest& request);
    Answer<filesystem::MoveResponse> move(const Exchange& exchange, const filesystem::MoveRequest& request);
    Answer<filesystem::ListDirResponse> list_dir(const Exchange& exchange,
                                                 const filesystem::ListDirRequest& request);
    Answer<filesystem::RemoveResponse> remove(const Exchange& exchange,
                                              const filesystem::RemoveRequest& request);

    struct Place {
        Caller caller;
        std::string path;
    };
    Result<Place> locate(const Exchange& exchange, std::string_view path);

    const Settings& settings_;
    UserCache& users_;
    boost::asio::thread_pool& pool_;
    TelemetryLog& log_;
};

}  // namespace gb::agent
