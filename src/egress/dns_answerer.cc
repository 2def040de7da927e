// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_answerer.h"

#include <algorithm>

namespace gb::egress {
namespace {

DnsReply failed(Error error) {
    DnsReply reply = server_failure();
    reply.failure = std::move(error);
    return reply;
}

// What is left of the answer's time, rounded up; encode() sees to the least.
std::uint32_t ttl_left(const Resolved& resolved, std::int64_t now_ms) {
    return static_cast<std::uint32_t>(std::max<std::int64_t>(0, resolved.expires_ms - now_ms + 999) / 1000);
}

DnsReply told_addresses(const Resolved& resolved, const std::vector<net::Ipv4>& open, std::uint32_t ttl_s) {
    if (resolved.rcode == Rcode::name_error) return nxdomain();
    if (open.empty() && !resolved.addresses.empty()) {
        DnsReply reply = nxdomain();
        reply.filtered = true;
        return reply;
    }
    DnsRecords records;
    for (const std::string& target : resolved.chain) records.chain.push_back({target, ttl_s});
    for (net::Ipv4 address : open) records.addresses.push_back({address, ttl_s});
    return answer(std::move(records));
}

}  // namespace

awaitable<DnsReply> answer_from(std::shared_ptr<Resolver> resolver, std::string owner, DnsQuery query,
                                AddressPredicate keep, std::shared_ptr<Pins> pins) {
    const DnsQuestion& question = query.question;
    switch (rule_for(question.type)) {
        case TypeRule::ask:
            break;
        case TypeRule::no_data:
            co_return no_data();
        case TypeRule::refuse:
            co_return refused();
    }
    if (question.type != DnsType::a) {
        auto got = co_await resolver->upstream().ask(std::move(owner), question);
        if (!got) co_return failed(std::move(got).error());
        co_return DnsReply{.rcode = got->rcode, .records = std::move(got->records)};
    }
    const auto resolved = co_await resolver->resolve(std::move(owner), question.name);
    if (!resolved) co_return failed(resolved.error());
    const std::int64_t now_ms = resolver->now_ms();
    const std::uint32_t ttl_s = ttl_left(*resolved, now_ms);
    const auto open = public_addresses(*resolved, keep);
    if (pins) pins->told(question.name, open, ttl_s, now_ms);
    co_return told_addresses(*resolved, open, ttl_s);
}

}  // namespace gb::egress
