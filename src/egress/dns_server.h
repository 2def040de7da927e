// SPDX-License-Identifier: Apache-2.0
// Answers the DNS queries of one sandbox, on sockets that were made in its network namespace.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "egress/dns_message.h"

namespace gb::egress {

namespace asio = boost::asio;
using asio::awaitable;

struct DnsServerOptions {
    std::size_t max_udp_queries = 64;  // under way; more are dropped
    std::size_t max_connections = 16;
    std::chrono::milliseconds idle{10'000};  // of a connection: for a whole query, or for taking an answer
    // What a sandbox may take of the one thread. Queries beyond wait in the kernel until the next second.
    std::size_t max_per_second = 1000;
};

struct DnsServerCounters {
    std::uint64_t queries = 0;      // that the answerer was asked
    std::uint64_t unusable = 0;     // answered or left unanswered without it, see parse_query()
    std::uint64_t dropped = 0;      // UDP queries over the limit
    std::uint64_t connections = 0;  // accepted
    std::uint64_t closed_for_room = 0;
};

// One executor with one thread; not thread-safe. Over TCP, queries of a connection are answered one after
// another; when a connection is too many, the one that has been idle for longest is closed, or, if none is
// idle, the new one.
class DnsServer {
  public:
    // Judges and answers; must come to an end by itself. It may still be under way after stop() and after the
    // server is gone (its reply is thrown away then), so it owns what it uses.
    using Answerer = std::function<awaitable<DnsReply>(DnsQuery)>;

    // `udp` is bound, `tcp` listens, both IPv4; their owner from now on, also if it fails. Answers leave
    // through the socket that the query came in on. One bound to 0.0.0.0 answers from the address that the
    // route to the guest gives it, which must be the one that the queries are redirected to.
    static Result<std::unique_ptr<DnsServer>> start(asio::any_io_executor executor, UniqueFd udp,
                                                    UniqueFd tcp, Answerer answerer,
                                                    DnsServerOptions options = {});
    ~DnsServer();  // stop()
    DnsServer(const DnsServer&) = delete;
    DnsServer& operator=(const DnsServer&) = delete;

    void stop();  // closes the sockets and all connections; no query is taken any more
    [[nodiscard]] const DnsServerCounters& counters() const;

  private:
    struct Core;
    explicit DnsServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}
    std::shared_ptr<Core> core_;
};

}  // namespace gb::egress
