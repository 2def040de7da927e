// SPDX-License-Identifier: Apache-2.0
// Asks the servers that the operator configured, for all sandboxes together.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "base/result.h"
#include "egress/dns_message.h"

namespace gb::egress {

namespace asio = boost::asio;
using asio::awaitable;

struct DnsEndpoint {
    net::Ipv4 address;
    std::uint16_t port = 53;
    bool operator==(const DnsEndpoint&) const = default;
};

// "1.1.1.1" or "1.1.1.1:53", and back with the port. invalid_argument does not quote the text.
Result<DnsEndpoint> parse_endpoint(std::string_view text);
std::string to_string(const DnsEndpoint& endpoint);

// The nameserver lines of a resolv.conf(5), in order, those with IPv4 addresses only. Pure.
std::vector<DnsEndpoint> upstreams_of_resolv_conf(std::string_view text);

struct UpstreamOptions {
    std::vector<DnsEndpoint> servers;
    std::size_t max_questions = 256;             // under way at the servers, of everybody
    std::size_t max_per_owner = 32;              // calls of one owner that wait
    std::chrono::milliseconds per_server{2000};  // UDP; after a truncated answer once more for TCP
    std::chrono::milliseconds total{5000};
};

// One executor with one thread; not thread-safe. Sockets are made in the network namespace of the thread that
// runs it: a fresh one a question, with a random port and id. Callers of the same question share one, whoever
// they are.
class Upstream {
  public:
    Upstream(asio::any_io_executor executor, UpstreamOptions options);
    ~Upstream();  // stop()
    Upstream(const Upstream&) = delete;
    Upstream& operator=(const Upstream&) = delete;

    // An answer with no_error or name_error. The server that answered last is asked first, then the others in
    // order; twice around while there is time. `owner` is for the limit alone. Once begun it may outlive the
    // object. Errors:
    // resource_exhausted over a limit, deadline_exceeded if nobody answered, unavailable if the answers were
    // failures or could not be understood, invalid_argument for a name that is_dns_name() refuses (but NS of
    // the root), canceled after stop().
    awaitable<Result<DnsAnswer>> ask(std::string owner, DnsQuestion question);

    // Ends what is under way; nothing is asked any more.
    void stop();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace gb::egress
