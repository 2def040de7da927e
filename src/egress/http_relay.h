// SPDX-License-Identifier: Apache-2.0
// Passes the HTTP/1.1 requests of one guest's connection on, one after another, each to the upstream that
// policy chose for it. The guest is the enemy and so may be the upstream: what either side gets is written
// anew from what was understood (RFC 9110, RFC 9112), so that nothing can be smuggled past policy and no
// answer can be split.
//
// - Every request is judged by its own Host; one that is refused gets 403 with the reason, and the connection
// ends.
//   Heads that can be understood in two ways get 400 (http/head_check.h), upstreams that cannot be reached,
//   do not answer or answer with anything but HTTP/1.x get 502; both end the connection. What breaks off in
//   the middle of an answer is cut.
// - Bodies pass in constant memory, each piece at once. Expect: 100-continue is answered here. Trailers are
// dropped.
// - Upgrades: to websocket only, then a tunnel of bytes; every other one is taken off the request. No
// CONNECT.
// - A request whose answer would show its own headers (TRACE) is refused where rules set some.
// - A guest that ends its direction of the connection has left, as for most servers.
// - A kept connection to an upstream that turns out to be closed is made anew once, for requests without a
// body that
//   may be repeated.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "egress/counting_stream.h"
#include "egress/header_rules.h"
#include "http/client.h"
#include "http/server.h"

namespace gb::egress {

struct RelayRequest;

// Where a request goes.
struct Route {
    // Of which upstream a connection is good for this request: host, port, address, whatever tells them
    // apart. Another key is another connection.
    std::string key;
    // Connects, with TLS where that belongs to it. Any error becomes a 502 with its text, permission_denied a
    // 403.
    std::function<http::awaitable<Result<std::shared_ptr<http::Stream>>>()> open;
    std::vector<HeaderRule> rules;  // set on this request
    SecretLookup secrets;           // for the placeholders in them; may be empty if there are none
};

struct RelayOptions {
    // Asked for every request with the value of its Host header. An error's text becomes the answer's reason:
    // unavailable and deadline_exceeded 502, everything else 403. Must not outlive what it refers to: after
    // stop() it may still be under way, and its result is dropped.
    std::function<http::awaitable<Result<Route>>(std::string_view host)> route;
    // Bytes to and from upstreams, inside TLS: heads, bodies and tunnels. Empty: the relay has its own.
    std::shared_ptr<ByteCounters> counters;

    std::size_t max_head_bytes = 64 * 1024;          // of a request
    std::size_t max_answer_head_bytes = 256 * 1024;  // of an answer
    std::chrono::seconds header_timeout{30};         // from the first byte of a request's head to its end
    std::chrono::seconds idle_timeout{620};          // between requests
    std::chrono::seconds answer_timeout{900};        // from a request's head to the end of its answer's head
    std::chrono::seconds stall_timeout{900};         // while nothing moves to or from the upstream at all
};

// Owned by a shared_ptr. One executor, the stream's; not thread-safe.
class HttpRelay : public std::enable_shared_from_this<HttpRelay> {
  public:
    HttpRelay(std::shared_ptr<http::Stream> guest, RelayOptions options);
    ~HttpRelay();
    HttpRelay(const HttpRelay&) = delete;
    HttpRelay& operator=(const HttpRelay&) = delete;

    // Serves the connection until it ends; once.
    http::awaitable<void> run();
    // Cuts both sides at once; run() ends soon. At any time, more than once, also before run().
    void stop();
    [[nodiscard]] const ByteCounters& counters() const { return *options_.counters; }

  private:
    enum class Outcome { complete, upgraded, no_answer, bad_request, cut };
    struct Passed {
        Outcome outcome = Outcome::no_answer;
        std::optional<Error> error;
    };
    http::awaitable<void> handle(http::Exchange& exchange);
    http::awaitable<Status> connect(const Route& route);
    http::awaitable<Passed> pass(http::Exchange& exchange, const RelayRequest& request);
    http::awaitable<Passed> send_answer(http::Exchange& exchange, http::ResponseHead head);
    http::awaitable<void> tunnel(http::Exchange& exchange);
    void drop_upstream();
    void cut(http::Exchange& exchange);
    void watch_for_stalls();

    std::shared_ptr<http::Stream> guest_;
    RelayOptions options_;
    http::Server server_;
    // The connection that is kept from request to request.
    std::optional<http::ClientConnection> upstream_;
    std::shared_ptr<http::Stream> upstream_stream_;
    std::string upstream_key_;
    http::ResponseHead upgraded_;  // the 101 that a tunnel begins with
    http::asio::steady_timer stall_timer_;
    std::uint64_t moved_ = 0;  // when the stall timer looked last
    bool busy_ = false, stopped_ = false;
};

}  // namespace gb::egress
