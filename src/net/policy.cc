// SPDX-License-Identifier: Apache-2.0
#include "net/policy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gb::net {
namespace {

constexpr std::string_view kNamesNeedDenyAll =
    "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all "
    "other "
    "traffic.";

constexpr Cidr block(std::uint32_t base, int length) {
    return {.base = {base}, .length = length};
}

constexpr std::array kClosed{
    block(0x00000000, 8),   // 0.0.0.0/8
    block(0x0A000000, 8),   // 10.0.0.0/8
    block(0x64400000, 10),  // 100.64.0.0/10
    block(0x7F000000, 8),   // 127.0.0.0/8
    block(0xA9FE0000, 16),  // 169.254.0.0/16
    block(0xAC100000, 12),  // 172.16.0.0/12
    block(0xC0A80000, 16),  // 192.168.0.0/16
    block(0xE0000000, 4),   // 224.0.0.0/4
    block(0xF0000000, 4),   // 240.0.0.0/4, with the broadcast address
};

const Cidr* narrowest(std::span<const Cidr> blocks, Ipv4 address) {
    const Cidr* best = nullptr;
    for (const Cidr& candidate : blocks)
        if (candidate.contains(address) && (best == nullptr || candidate.length > best->length))
            best = &candidate;
    return best;
}

const NamePattern* matching(std::span<const NamePattern> patterns, std::string_view name) {
    const NamePattern* best = nullptr;
    for (const NamePattern& candidate : patterns)
        if (candidate.matches(name) && (best == nullptr || candidate.name.size() > best->name.size()))
            best = &candidate;
    return best;
}

Ruling deny(std::string rule) {
    return {Verdict::deny, std::move(rule)};
}
Ruling allow(std::string rule) {
    return {Verdict::allow, std::move(rule)};
}

Result<std::vector<HeaderRules>> parse_rules(const NetworkRequest& request) {
    std::vector<HeaderRules> out;
    for (const auto& [text, headers] : request.rules) {
        auto host = parse_pattern(text);
        if (!host || host->kind == NamePattern::Kind::every)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("invalid host '{}' in network rules: give a host name or *.name", text));
        const bool twice =
            std::ranges::any_of(out, [&](const HeaderRules& other) { return other.host == *host; });
        if (twice)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("host '{}' is in network rules twice", text));
        out.push_back({std::move(*host), headers});
    }
    return out;
}

Result<ProxyAddress> parse_proxy(const ProxyRequest& request) {
    auto invalid = [](std::string_view reason) {
        return fail(ErrorCode::invalid_argument, fmt::format("invalid egress proxy: {}", reason));
    };
    auto authority = parse_authority(request.address);
    if (!authority) return invalid(authority.error().message);
    if (!authority->port) return invalid("its address is host:port");
    if (authority->host.kind == Host::Kind::ipv6) return invalid("sandboxes have no IPv6");
    if (request.username.size() > 255 || request.password.size() > 255)
        return invalid("user name and password have at most 255 characters");
    if (request.username.empty() && !request.password.empty()) return invalid("a password needs a user name");
    return ProxyAddress{authority->host, *authority->port, request.username, request.password};
}

}  // namespace

Result<EgressPolicy> parse_policy(const NetworkRequest& request) {
    if (std::max({request.allow_out.size(), request.deny_out.size(), request.rules.size()}) >
        kMaxPolicyEntries)
        return fail(
            ErrorCode::invalid_argument,
            fmt::format(
                "a network policy holds at most {} allowed and {} denied entries, and {} hosts with rules",
                kMaxPolicyEntries, kMaxPolicyEntries, kMaxPolicyEntries));
    EgressPolicy policy;
    for (const std::string& entry : request.deny_out) {
        auto cidr = parse_cidr(entry);
        if (!cidr) return fail(ErrorCode::invalid_argument, fmt::format("invalid denied CIDR {}", entry));
        if (const Cidr* v4 = std::get_if<Cidr>(&*cidr)) policy.deny.push_back(*v4);
    }
    if (request.allow_internet_access == false) policy.deny.push_back(block(0, 0));
    const bool deny_all = std::ranges::find(policy.deny, block(0, 0)) != policy.deny.end();

    for (const std::string& entry : request.allow_out) {
        if (auto cidr = parse_cidr(entry)) {
            if (const Cidr* v4 = std::get_if<Cidr>(&*cidr)) policy.allow.push_back(*v4);
            continue;
        }
        if (!deny_all) return fail(ErrorCode::invalid_argument, std::string(kNamesNeedDenyAll));
        auto pattern = parse_pattern(entry);
        if (!pattern)
            return fail(ErrorCode::invalid_argument, fmt::format("invalid allowed address or domain {}: {}",
                                                                 entry, pattern.error().message));
        policy.names.push_back(std::move(*pattern));
    }
    GB_TRY_ASSIGN(policy.rules, parse_rules(request));
    if (request.egress_proxy) {
        GB_TRY_ASSIGN(policy.proxy, parse_proxy(*request.egress_proxy));
    }
    return policy;
}

EgressPolicy closed_policy() {
    return {.allow = {}, .deny = {block(0, 0)}, .names = {}, .rules = {}, .proxy = {}};
}

std::span<const Cidr> closed_ranges() {
    return kClosed;
}

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::allow:
            return "allow";
        case Verdict::deny:
            return "deny";
        case Verdict::end:
            return "end";
    }
    return "deny";
}

std::optional<std::string> closed_to_all(const Ceiling& ceiling, Ipv4 address) {
    if (narrowest(kClosed, address) != nullptr) return "private";
    if (const Cidr* c = narrowest(ceiling.closed, address)) return "closed " + to_string(*c);
    return std::nullopt;
}

Ruling judge(const EgressPolicy& policy, const Ceiling& ceiling, Ipv4 address,
             std::optional<std::string_view> name) {
    if (auto rule = closed_to_all(ceiling, address)) return deny(*std::move(rule));
    if (name)
        if (const NamePattern* n = matching(ceiling.closed_names, *name))
            return deny("closed " + to_string(*n));
    if (ceiling.only_listed && narrowest(ceiling.open, address) == nullptr &&
        (!name || matching(ceiling.open_names, *name) == nullptr))
        return deny("closed");
    if (const Cidr* c = narrowest(policy.allow, address)) return allow("allow " + to_string(*c));
    if (name)
        if (const NamePattern* n = matching(policy.names, *name)) return allow("allow " + to_string(*n));
    if (const Cidr* c = narrowest(policy.deny, address)) return deny("deny " + to_string(*c));
    return allow("default");
}

Ruling judge_name(const EgressPolicy& policy, const Ceiling& ceiling, std::string_view name) {
    if (const NamePattern* n = matching(ceiling.closed_names, name)) return deny("closed " + to_string(*n));
    if (ceiling.only_listed && matching(ceiling.open_names, name) == nullptr) return deny("closed");
    if (const NamePattern* n = matching(policy.names, name)) return allow("allow " + to_string(*n));
    if (std::ranges::find(policy.deny, block(0, 0)) != policy.deny.end()) return deny("deny 0.0.0.0/0");
    return allow("default");
}

std::vector<HeaderRule> header_rules(const EgressPolicy& policy, std::string_view name) {
    std::vector<const HeaderRules*> matches;
    for (const HeaderRules& rules : policy.rules)
        if (rules.host.matches(name)) matches.push_back(&rules);
    // Wider patterns first: what is said later replaces what was said before.
    std::ranges::sort(matches, {}, [](const HeaderRules* rules) {
        return std::pair(rules->host.kind == NamePattern::Kind::exact, rules->host.name.size());
    });
    std::vector<HeaderRule> out;
    for (const HeaderRules* rules : matches)
        out.insert(out.end(), rules->headers.begin(), rules->headers.end());
    return out;
}

PacketSets packet_sets(const EgressPolicy& policy, const Ceiling& ceiling) {
    const std::vector<Cidr> all{block(0, 0)};
    PacketSets sets{.allow = policy.allow,
                    .deny = policy.deny,
                    .named = {},
                    .tunneled = {},
                    .udp_closed = {},
                    .quic_closed = {}};
    if (policy.proxy) {
        sets.tunneled = all;
        return sets;
    }
    const bool says_headers = !policy.rules.empty();
    const bool closes_names = !ceiling.closed_names.empty();
    const bool opens_names = !policy.names.empty() || (ceiling.only_listed && !ceiling.open_names.empty());
    if (says_headers || closes_names) {
        sets.named = all;  // an allowed address may be that of a host that the rules are about
        sets.quic_closed = all;
    } else if (opens_names) {
        sets.named = complement(policy.allow);
        if (ceiling.only_listed) sets.named = all;
    }
    if (!policy.names.empty()) sets.udp_closed = all;
    return sets;
}

std::vector<Cidr> complement(std::span<const Cidr> blocks) {
    std::vector<Cidr> out;
    // The largest blocks that begin at `first` and do not go beyond `last`.
    auto cover = [&](std::uint64_t first, std::uint64_t last) {
        while (first <= last) {
            int length = 32;
            while (length > 0) {
                const std::uint64_t size = std::uint64_t{1} << (33 - length);
                if (first % size != 0 || first + size - 1 > last) break;
                --length;
            }
            out.push_back({.base = {static_cast<std::uint32_t>(first)}, .length = length});
            first += std::uint64_t{1} << (32 - length);
        }
    };
    std::uint64_t next = 0;
    for (const Range& range : merge(blocks)) {
        if (range.first.value > next) cover(next, std::uint64_t{range.first.value} - 1);
        next = std::uint64_t{range.last.value} + 1;
    }
    if (next <= UINT32_MAX) cover(next, UINT32_MAX);
    return out;
}

}  // namespace gb::net
