// SPDX-License-Identifier: Apache-2.0
// All processes that clients have started, running and lately ended.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "guest/agent/process.h"
#include "guest/agent/spawn.h"

namespace gb::agent {

struct Launch {
    SpawnRequest spawn;  // without its descriptors
    ::process::ProcessConfig config;
    std::optional<std::string> tag;
    std::optional<TerminalSize> terminal;
    gid_t terminal_group = 0;
    bool with_stdin = false;  // otherwise it reads /dev/null
};

class ProcessTable {
  public:
    // `reap_all`: the agent is PID 1 and buries orphans too.
    ProcessTable(asio::any_io_executor executor, bool reap_all);
    ~ProcessTable();
    ProcessTable(const ProcessTable&) = delete;
    ProcessTable& operator=(const ProcessTable&) = delete;

    // Returns when the program executes, or with the reason why it cannot. The caller subscribes and then
    // calls begin(), with a call of retire() as the callback.
    awaitable<Result<std::shared_ptr<Process>>> start(Launch launch);
    void retire(const std::shared_ptr<Process>& process);  // it has ended: connectable a while longer

    [[nodiscard]] std::vector<std::shared_ptr<Process>> running() const;
    // By pid or tag, the youngest first; not_found with the contract's text.
    [[nodiscard]] Result<std::shared_ptr<Process>> find_running(
        const ::process::ProcessSelector& selector) const;
    [[nodiscard]] Result<std::shared_ptr<Process>> find(const ::process::ProcessSelector& selector) const;

    // Collects the exit statuses that are there: to be called on SIGCHLD.
    void reap();

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace gb::agent
