// SPDX-License-Identifier: Apache-2.0
// The HTTP side of files (contract 3.6): GET and POST /files, POST /files/compose. Bodies of any size in
// constant memory.
#pragma once

#include <boost/asio/thread_pool.hpp>

#include "guest/agent/caller.h"
#include "guest/agent/reply.h"
#include "guest/agent/settings.h"
#include "guest/agent/telemetry_log.h"

namespace gb::agent {

class FilesHttp {
  public:
    // All of them must outlive it. Access has been checked before a call.
    FilesHttp(const Settings& settings, UserCache& users, boost::asio::thread_pool& pool, TelemetryLog& log)
        : settings_(settings), users_(users), pool_(pool), log_(log) {}

    awaitable<void> download(Exchange& exchange);
    awaitable<void> upload(Exchange& exchange);
    awaitable<void> compose(Exchange& exchange);

  private:
    void log_written(const std::string& path, const std::string& user);

    const Settings& settings_;
    UserCache& users_;
    boost::asio::thread_pool& pool_;
    TelemetryLog& log_;
};

}  // namespace gb::agent
