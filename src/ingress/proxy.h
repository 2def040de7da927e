// SPDX-License-Identifier: Apache-2.0
// Passes a request on to a port of a sandbox and the answer back: any method, streams both ways at once, upgrades
// (WebSocket) as bare bytes. Nothing is buffered beyond one piece of 64 KiB in each direction.
#pragma once

#include "control/sandboxes.h"
#include "http/server.h"
#include "ingress/replies.h"
#include "ingress/route.h"
#include "ingress/upstreams.h"

namespace gb::ingress {

class Proxy {
  public:
    explicit Proxy(Sandboxes& sandboxes) : sandboxes_(sandboxes), upstreams_(sandboxes.node()) {}

    http::awaitable<void> handle(http::Exchange& exchange, Route route);
    // Cuts every stream into a sandbox that is going away.
    void cut(const std::string& sandbox_id) { upstreams_.cut(sandbox_id); }

  private:
    // Nothing: the request may pass. Waits while the sandbox is in a transition, and wakes it if it wakes on traffic.
    http::awaitable<std::optional<Reply>> admit(const http::Exchange& exchange, const Route& route, bool browser);
    http::awaitable<Result<std::unique_ptr<Upstreams::Lease>>> reach(const Route& route, Upstreams::Kept kept);
    enum class Passed {
        answered,  // in whatever way: the exchange is over
        unheard,   // nothing came back on a kept connection: the service may not even have seen the request
    };
    http::awaitable<Passed> pass(http::Exchange& exchange, const Route& route, const std::string& host_mask,
                                 std::unique_ptr<Upstreams::Lease> lease, bool repeatable);

    Sandboxes& sandboxes_;
    Upstreams upstreams_;
};

}  // namespace gb::ingress
