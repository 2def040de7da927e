// SPDX-License-Identifier: Apache-2.0
// Connections into sandboxes: kept for reuse while idle, and all known, so that the end of a sandbox cuts
// every stream at once. One executor; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"
#include "http/client.h"
#include "ingress/route.h"
#include "node/node.h"

namespace gb::ingress {

class Upstreams {
  public:
    explicit Upstreams(Node& node) : node_(node) {}

    // A connection in use. Ends in give_back() or by being destroyed, which closes it.
    class Lease {
      public:
        Lease(Upstreams& owner, Route route, http::ClientConnection connection, bool kept);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        http::ClientConnection& connection() { return connection_; }
        // The two streams that took over from HTTP after an upgrade: a cut closes both. They stay the
        // caller's.
        void track(http::Stream* sandbox, http::Stream* client) { raw_ = {sandbox, client}; }
        void cut();
        [[nodiscard]] bool was_cut() const { return cut_; }
        // It carried requests before: the service may have closed it at the very moment it is used again.
        [[nodiscard]] bool kept() const { return kept_; }

      private:
        friend class Upstreams;
        Upstreams& owner_;
        Route route_;
        http::ClientConnection connection_;
        std::array<http::Stream*, 2> raw_{};
        bool cut_ = false;
        bool kept_;
    };

    enum class Kept { allowed, refused };
    boost::asio::awaitable<Result<std::unique_ptr<Lease>>> acquire(Route route, Kept kept);
    // Keeps the connection for the next request if it can carry one.
    void give_back(std::unique_ptr<Lease> lease);
    // Closes everything that leads into that sandbox.
    void cut(const std::string& sandbox_id);

  private:
    struct Idle {
        http::ClientConnection connection;
        std::int64_t since_ms;
    };
    struct PerSandbox {
        std::unordered_map<std::uint16_t, std::vector<Idle>> idle;
        std::unordered_set<Lease*> leases;
    };

    Node& node_;
    std::unordered_map<std::string, PerSandbox> sandboxes_;
};

}  // namespace gb::ingress
