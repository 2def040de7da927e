// SPDX-License-Identifier: Apache-2.0
// process.Process (contract 3.3).
#pragma once

#include <memory>
#include <string_view>

#include "guest/agent/caller.h"
#include "guest/agent/process_log.h"
#include "guest/agent/process_table.h"
#include "guest/agent/rpc.h"
#include "guest/agent/settings.h"

namespace gb::agent {

class ProcessService {
  public:
    // All of them must outlive the service.
    ProcessService(ProcessTable& table, const Settings& settings, UserCache& users,
                   const ProcessLimits& limits, TelemetryLog& log)
        : table_(table), settings_(settings), users_(users), limits_(limits), log_(log) {}

    // Answers a call of `method`; false when there is no such method.
    awaitable<bool> serve(Exchange& exchange, std::string_view method);

  private:
    using ProcessPtr = std::shared_ptr<Process>;

    awaitable<Status> start(StreamWriter& writer, const ::process::StartRequest& request);
    awaitable<Status> connect(StreamWriter& writer, const ::process::ConnectRequest& request);
    awaitable<void> stream_input(Exchange& exchange);
    struct Launched {
        ProcessPtr process;
        LoggedProcess logged;
    };
    awaitable<Result<Launched>> launch(Exchange& exchange, const ::process::StartRequest& request);
    awaitable<Result<::process::SendInputResponse>> send_input(Exchange& exchange,
                                                               const ::process::SendInputRequest& request);
    awaitable<Result<::process::CloseStdinResponse>> close_stdin(const ::process::CloseStdinRequest& request);
    Result<::process::UpdateResponse> update(const ::process::UpdateRequest& request);
    Result<::process::SendSignalResponse> send_signal(const ::process::SendSignalRequest& request);
    ::process::ListResponse list() const;

    ProcessTable& table_;
    const Settings& settings_;
    UserCache& users_;
    const ProcessLimits& limits_;
    TelemetryLog& log_;
};

}  // namespace gb::agent
