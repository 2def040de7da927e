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

// "*", "example.com" or "*.example.com": letters, digits, hyphens and underscores, RFC 1035 lengths.
bool is_name_pattern(std::string_view text) {
    if (text == "*") return true;
    if (text.starts_with("*.")) text.remove_prefix(2);
    if (text.empty() || text.size() > 253) return false;
    std::size_t label = 0;
    bool numeric = true;
    for (char c : text) {
        if (c == '.') {
            if (label == 0) return false;
            label = 0;
            numeric = true;
            continue;
        }
        bool digit = c >= '0' && c <= '9';
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!digit && !letter && c != '-' && c != '_') return false;
        if (++label > 63) return false;
        numeric = numeric && digit;
    }
    return label > 0 && !numeric;  // a last label of digits is a mistyped address (RFC 3696 section 2)
}

const Cidr* narrowest(std::span<const Cidr> blocks, Ipv4 address) {
    const Cidr* best = nullptr;
    for (const Cidr& candidate : blocks)
        if (candidate.contains(address) && (best == nullptr || candidate.length > best->length))
            best = &candidate;
    return best;
}

}  // namespace

Result<EgressPolicy> parse_policy(const NetworkRequest& request) {
    if (request.allow_out.size() > kMaxPolicyEntries || request.deny_out.size() > kMaxPolicyEntries)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("a network policy holds at most {} allowed and {} denied entries",
                                kMaxPolicyEntries, kMaxPolicyEntries));
    EgressPolicy policy;
    for (const std::string& entry : request.deny_out) {
        auto cidr = parse_cidr(entry);
        if (!cidr) return fail(ErrorCode::invalid_argument, fmt::format("invalid denied CIDR {}", entry));
        if (const Cidr* v4 = std::get_if<Cidr>(&*cidr)) policy.deny.push_back(*v4);
    }
    if (request.allow_internet_access == false) policy.deny.push_back(block(0, 0));
    bool deny_all = std::ranges::find(policy.deny, block(0, 0)) != policy.deny.end();

    std::string first_name;
    for (const std::string& entry : request.allow_out) {
        if (auto cidr = parse_cidr(entry)) {
            if (const Cidr* v4 = std::get_if<Cidr>(&*cidr)) policy.allow.push_back(*v4);
            continue;
        }
        if (!deny_all) return fail(ErrorCode::invalid_argument, std::string(kNamesNeedDenyAll));
        if (!is_name_pattern(entry))
            return fail(ErrorCode::invalid_argument,
                        fmt::format("invalid allowed address or domain {}", entry));
        if (first_name.empty()) first_name = entry;
    }
    if (!first_name.empty())
        return fail(
            ErrorCode::unimplemented,
            fmt::format(
                "allow out by domain name ({}) cannot be enforced by this server yet; give addresses or "
                "CIDR blocks instead",
                first_name));
    return policy;
}

EgressPolicy closed_policy() {
    return {.allow = {}, .deny = {block(0, 0)}};
}

std::span<const Cidr> closed_ranges() {
    return kClosed;
}

std::string_view to_string(Verdict verdict) {
    return verdict == Verdict::allow ? "allow" : "deny";
}

Ruling evaluate(const EgressPolicy& policy, std::span<const Cidr> ceiling, Ipv4 address) {
    if (narrowest(kClosed, address) != nullptr) return {Verdict::deny, "private"};
    if (const Cidr* c = narrowest(ceiling, address)) return {Verdict::deny, "closed " + to_string(*c)};
    if (const Cidr* c = narrowest(policy.allow, address)) return {Verdict::allow, "allow " + to_string(*c)};
    if (const Cidr* c = narrowest(policy.deny, address)) return {Verdict::deny, "deny " + to_string(*c)};
    return {Verdict::allow, "default"};
}

}  // namespace gb::net
