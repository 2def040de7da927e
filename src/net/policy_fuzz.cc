// SPDX-License-Identifier: Apache-2.0
// Policies of any client under ceilings of any operator: what packets are let through by the sets of the
// slot's rules is what the judgement says, and nothing opens what is closed to all.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fuzzer/FuzzedDataProvider.h>

#include "net/policy.h"

namespace gb::net {
namespace {

std::string destination(FuzzedDataProvider& data) {
    static constexpr std::string_view kKnown[] = {
        "0.0.0.0/0", "1.1.1.1",       "1.1.1.0/24",    "10.0.0.0/8", "8.8.8.8/32", "128.0.0.0/1",
        "::/0",      "a.example.com", "*.example.com", "*",          "xn--a.test", "169.254.169.254"};
    if (data.ConsumeBool()) return std::string(data.PickValueInArray(kKnown));
    if (data.ConsumeBool()) return to_string(Cidr{{data.ConsumeIntegral<std::uint32_t>()}, 32});
    return data.ConsumeRandomLengthString(40);
}

std::vector<std::string> destinations(FuzzedDataProvider& data) {
    std::vector<std::string> out(data.ConsumeIntegralInRange<std::size_t>(0, 6));
    for (std::string& text : out) text = destination(data);
    return out;
}

NetworkRequest request(FuzzedDataProvider& data) {
    NetworkRequest out;
    if (data.ConsumeBool()) out.allow_internet_access = data.ConsumeBool();
    out.allow_out = destinations(data);
    out.deny_out = destinations(data);
    if (data.ConsumeBool()) out.deny_out.emplace_back("0.0.0.0/0");  // what names ask for
    for (const std::string& host : destinations(data)) out.rules[host] = {{"X-A", "b"}};
    if (data.ConsumeProbability<float>() < 0.2F)
        out.egress_proxy =
            ProxyRequest{data.ConsumeBool() ? "proxy.example.com:1080" : destination(data), "", ""};
    return out;
}

Ceiling ceiling(FuzzedDataProvider& data) {
    Ceiling out;
    out.only_listed = data.ConsumeBool();
    const auto split = [&](std::vector<Cidr>& blocks, std::vector<NamePattern>& names) {
        for (const std::string& text : destinations(data)) {
            if (auto cidr = parse_cidr(text)) {
                if (const auto* v4 = std::get_if<Cidr>(&*cidr)) blocks.push_back(*v4);
            } else if (auto name = parse_pattern(text)) {
                names.push_back(*name);
            }
        }
    };
    split(out.closed, out.closed_names);
    split(out.open, out.open_names);
    return out;
}

// The chain `outward` of slot_rules.cc, for a port that no proxy serves. Nothing: a proxy judges it.
std::optional<bool> packet_passes(const PacketSets& sets, const Ceiling& ceiling, Ipv4 address, bool is_udp) {
    if (within(closed_ranges(), address) || within(ceiling.closed, address)) return false;
    if (ceiling.only_listed && within(complement(ceiling.open), address)) return false;
    if (within(sets.tunneled, address)) return is_udp ? std::optional(false) : std::nullopt;
    if (is_udp && within(sets.udp_closed, address)) return false;
    if (within(sets.allow, address)) return true;
    return !within(sets.deny, address);
}

void check(bool holds) {
    if (!holds) std::abort();
}

void check_address(const EgressPolicy& policy, const Ceiling& above, const PacketSets& sets, Ipv4 address,
                   const std::string& name) {
    const Ruling plain = judge(policy, above, address), named = judge(policy, above, address, name);
    if (closed_to_all(above, address)) check(!plain.allowed() && !named.allowed());
    if (const auto tcp = packet_passes(sets, above, address, false)) check(*tcp == plain.allowed());
    // UDP is never more open than TCP.
    if (packet_passes(sets, above, address, true).value_or(false)) check(plain.allowed());
    // A name opens only what may be asked for, or an address that the client lists, and the web's ports see a
    // proxy wherever a name could decide.
    if (named.allowed() && !plain.allowed()) {
        check(judge_name(policy, above, name).allowed() || named.rule.starts_with("allow "));
        check(within(sets.named, address) || within(sets.tunneled, address));
    }
    if (plain.allowed() && !named.allowed())
        check(within(sets.named, address) || within(sets.tunneled, address));
    if (!header_rules(policy, name).empty())
        check(within(sets.named, address) || within(sets.tunneled, address));
}

}  // namespace
}  // namespace gb::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    using namespace gb::net;
    FuzzedDataProvider data(bytes, size);
    const auto policy = parse_policy(request(data));
    if (!policy) return 0;
    const Ceiling above = ceiling(data);
    const PacketSets sets = packet_sets(*policy, above);
    const auto host = parse_host(destination(data));
    const std::string name = host && host->kind == Host::Kind::name ? host->name : "a.example.com";
    for (int i = 0; i < 8; ++i)
        check_address(*policy, above, sets, {data.ConsumeIntegral<std::uint32_t>()}, name);
    for (const char* text :
         {"1.1.1.1", "8.8.8.8", "10.0.0.1", "169.254.169.254", "127.0.0.1", "255.255.255.255", "0.0.0.0"})
        check_address(*policy, above, sets, *parse_ipv4(text), name);
    for (const char* text : {"169.254.169.254", "10.0.0.1", "127.0.0.1"})
        check(!judge(*policy, above, *parse_ipv4(text)).allowed());
    return 0;
}
