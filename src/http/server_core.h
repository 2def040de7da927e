// SPDX-License-Identifier: Apache-2.0
// What a server's listeners and connections share. Internal to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "http/server.h"

namespace gb::http::detail {

class ServerCore : public std::enable_shared_from_this<ServerCore> {
  public:
    // Runs one accepted connection to its end.
    using Serve = std::function<awaitable<void>(tcp::socket, tcp::endpoint peer)>;

    ServerCore(asio::any_io_executor e, Handler h, ServerOptions o)
        : executor(std::move(e)), handler(std::move(h)), options(o) {}

    const asio::any_io_executor executor;
    const Handler handler;
    const ServerOptions options;

    Result<tcp::endpoint> listen(const tcp::endpoint& where, Serve serve);
    // HTTP/1.1 until the connection ends.
    awaitable<void> serve_http1(std::shared_ptr<Stream> stream, tcp::endpoint peer);
    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] std::size_t connections() const { return open_.size(); }
    void stop();
    void on_stop(std::function<void()> action) { on_stop_.push_back(std::move(action)); }

    // A connection that counts, and that stop() cuts.
    class Open {
      public:
        Open(ServerCore& core, Stream& stream) : core_(core), id_(core.next_id_++) {
            core_.open_.emplace(id_, &stream);
        }
        ~Open() { core_.open_.erase(id_); }
        Open(const Open&) = delete;
        Open& operator=(const Open&) = delete;

      private:
        ServerCore& core_;
        std::uint64_t id_;
    };

  private:
    awaitable<void> accept(std::shared_ptr<ServerCore> self, std::shared_ptr<tcp::acceptor> acceptor, Serve serve);

    std::vector<std::shared_ptr<tcp::acceptor>> acceptors_;
    std::vector<std::function<void()>> on_stop_;
    std::unordered_map<std::uint64_t, Stream*> open_;  // their connections own them
    std::uint64_t next_id_ = 0;
    bool stopped_ = false;
};

// Closing with unread input makes the kernel reset the connection, and what was sent last may be lost with
// it: says that nothing more comes, and reads for half a second at most.
awaitable<void> linger(std::shared_ptr<Stream> stream);

}  // namespace gb::http::detail
