// SPDX-License-Identifier: Apache-2.0
// The agent itself: its settings, its processes and its HTTP server. One thread; everything runs on the
// executor of the io_context that it is given, which must be run by the caller and outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "guest/agent/settings.h"

namespace gb::agent {

struct AgentOptions {
    Settings settings;
    ProcessLimits limits;
    // PID 1: buries orphans, and sets clock, host name and entropy of the machine as /init says.
    bool owns_machine = false;
    // Who may call /init. Programs of the sandbox may not.
    std::optional<boost::asio::ip::address> control_peer;
    bool allow_local_init = false;
    std::string state_dir;   // for generation and envs.json; empty: they are not written
    std::string trust_root;  // holds the /etc and /usr that trust an authority; empty: none is installed, no /trust
};

class Agent {
  public:
    Agent(boost::asio::io_context& context, AgentOptions options);
    ~Agent();  // cuts all connections; processes go on
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    // Port 0 picks a free one. Returns where it listens.
    Result<boost::asio::ip::tcp::endpoint> listen(const boost::asio::ip::tcp::endpoint& where);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gb::agent
