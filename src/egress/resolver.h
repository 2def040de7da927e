// SPDX-License-Identifier: Apache-2.0
// Names to addresses, for the proxy and for what guests ask: an Upstream with a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "egress/recent_map.h"
#include "egress/upstream.h"

namespace gb::egress {

// What a name has, *before* policy has looked at the addresses: anybody can make a name lead to 10.0.0.1.
struct Resolved {
    Rcode rcode = Rcode::no_error;     // or name_error
    std::vector<std::string> chain;    // names that the asked one is an alias of, in order
    std::vector<net::Ipv4> addresses;  // none: the name does not exist, or has none
    std::int64_t expires_ms = 0;       // of the resolver's clock; by the shortest TTL in it
};

using AddressPredicate = std::function<bool(net::Ipv4)>;  // true: policy leaves this address open

// The addresses that may be used. Pure.
std::vector<net::Ipv4> public_addresses(const Resolved& resolved, const AddressPredicate& keep);

struct ResolverOptions {
    std::size_t max_names = 10'000;
    std::int64_t negative_ms = 5000;
    std::function<std::int64_t()> clock = monotonic_ms;
};

// One executor with one thread, that of the Upstream. Names are kept for their TTL (1…300 s), those without
// addresses for negative_ms, failures not at all; the cache is common to all sandboxes. Must live until
// resolve() has returned: hold it in a shared_ptr.
class Resolver {
  public:
    Resolver(std::shared_ptr<Upstream> upstream, ResolverOptions options = {});

    // A name in canonical form. Errors: those of Upstream::ask().
    awaitable<Result<Resolved>> resolve(std::string owner, std::string name);

    [[nodiscard]] Upstream& upstream() { return *upstream_; }
    [[nodiscard]] std::int64_t now_ms() const { return options_.clock(); }
    [[nodiscard]] std::size_t cached_names() const { return cache_.size(); }

  private:
    std::shared_ptr<Upstream> upstream_;
    ResolverOptions options_;
    RecentMap<Resolved> cache_;
};

}  // namespace gb::egress
