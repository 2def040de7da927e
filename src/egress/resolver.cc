// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver.h"

#include <algorithm>
#include <iterator>

namespace gb::egress {
namespace {

Resolved resolved_of(DnsAnswer answer, std::int64_t now_ms, std::int64_t negative_ms) {
    Resolved out{.rcode = answer.rcode};
    std::uint32_t ttl_s = kMaxTtlSeconds;
    for (DnsAlias& alias : answer.records.chain) {
        ttl_s = std::min(ttl_s, alias.ttl_s);
        out.chain.push_back(std::move(alias.target));
    }
    for (const DnsAddress& address : answer.records.addresses) {
        ttl_s = std::min(ttl_s, address.ttl_s);
        out.addresses.push_back(address.address);
    }
    out.expires_ms = now_ms + (out.addresses.empty() ? negative_ms : std::int64_t{ttl_s} * 1000);
    return out;
}

}  // namespace

std::vector<net::Ipv4> public_addresses(const Resolved& resolved, const AddressPredicate& keep) {
    std::vector<net::Ipv4> out;
    std::ranges::copy_if(resolved.addresses, std::back_inserter(out), keep);
    return out;
}

Resolver::Resolver(std::shared_ptr<Upstream> upstream, ResolverOptions options)
    : upstream_(std::move(upstream)), options_(std::move(options)), cache_(options_.max_names) {}

awaitable<Result<Resolved>> Resolver::resolve(std::string owner, std::string name) {
    if (const Resolved* cached = cache_.find(name)) {
        if (now_ms() < cached->expires_ms) co_return *cached;
        cache_.erase(name);
    }
    GB_CO_TRY_ASSIGN(auto answer, co_await upstream_->ask(std::move(owner), {name, DnsType::a}));
    co_return cache_.put(name, resolved_of(std::move(answer), now_ms(), options_.negative_ms));
}

}  // namespace gb::egress
