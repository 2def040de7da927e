// SPDX-License-Identifier: Apache-2.0
#include "egress/plan.h"

namespace gb::egress {
namespace {

Plan by_name(net::Ruling ruling, std::vector<net::HeaderRule> headers) {
    if (!ruling.allowed()) return {Way::refuse, std::move(ruling.rule), {}};
    const Way way = headers.empty() ? Way::resolved : Way::intercepted;
    return {way, std::move(ruling.rule), std::move(headers)};
}

}  // namespace

Plan plan(const net::EgressPolicy& policy, const net::Ceiling& ceiling, net::Ipv4 address,
          std::optional<std::string_view> name, bool synthetic) {
    if (synthetic) {
        if (!name) return {Way::refuse, "no-name", {}};
        return by_name(net::judge_name(policy, ceiling, *name), net::header_rules(policy, *name));
    }
    net::Ruling alone = net::judge(policy, ceiling, address);
    if (!name) {
        if (alone.allowed()) return {Way::direct, std::move(alone.rule), {}};
        // It may be a name that is missing, or an address that no name would open.
        const bool names_open = ceiling.only_listed ? !ceiling.open_names.empty() : !policy.names.empty();
        const bool by_list = alone.rule == "closed" || alone.rule.starts_with("deny ");
        return {Way::refuse, names_open && by_list ? "no-name" : std::move(alone.rule), {}};
    }
    // A closed name is closed by whatever address.
    net::Ruling named = net::judge(policy, ceiling, address, name);
    std::vector<net::HeaderRule> headers = net::header_rules(policy, *name);
    if (named.allowed() && alone.allowed() && headers.empty())
        return {Way::direct, std::move(alone.rule), {}};
    return by_name(std::move(named), std::move(headers));
}

}  // namespace gb::egress
