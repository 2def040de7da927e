// SPDX-License-Identifier: Apache-2.0
// Network namespaces without names: held by a descriptor, gone when nothing holds them. No bind mount, so
// nothing can be left behind by a process that dies. See network_namespaces(7).
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::net {

// Puts the calling thread into a namespace until it goes out of scope. A thread that cannot return would run
// other sandboxes' or the host's business in the wrong place, so then the process ends. Never keep one across
// a suspension point of a coroutine, and do not let it outlive its thread.
class NetnsScope {
  public:
    static Result<NetnsScope> enter(int netns_fd);
    static Result<NetnsScope> enter_new();  // a fresh namespace; current_netns() gives it a holder

    NetnsScope(NetnsScope&& other) noexcept = default;
    NetnsScope& operator=(NetnsScope&&) = delete;
    NetnsScope(const NetnsScope&) = delete;
    NetnsScope& operator=(const NetnsScope&) = delete;
    ~NetnsScope();

  private:
    explicit NetnsScope(UniqueFd home) : home_(std::move(home)) {}
    UniqueFd home_;
};

Result<UniqueFd> current_netns();  // of the calling thread
Result<UniqueFd> create_netns();
Result<UniqueFd> netns_of(pid_t pid);          // not_found when there is no such process
Result<std::uint64_t> netns_id(int netns_fd);  // of no other namespace while this one lives

}  // namespace gb::net
