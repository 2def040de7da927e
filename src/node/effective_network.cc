// SPDX-License-Identifier: Apache-2.0
#include "node/effective_network.h"

#include <fmt/format.h>

namespace gb {
namespace {

template <class List>
void add_texts(std::vector<std::string>& out, const List& items) {
    for (const auto& item : items) out.push_back(to_string(item));
}

std::string host_text(const net::Host& host) {
    return host.kind == net::Host::Kind::name ? host.name : net::to_string(host.address);
}

}  // namespace

EffectiveNetwork effective_network(const net::EgressPolicy& policy, const net::Ceiling& ceiling,
                                   const NetworkOptions& options) {
    EffectiveNetwork out;
    add_texts(out.closed, net::closed_ranges());
    add_texts(out.closed, ceiling.closed);
    add_texts(out.closed, ceiling.closed_names);
    out.only_listed = ceiling.only_listed;
    if (ceiling.only_listed) {
        add_texts(out.listed, ceiling.open);
        add_texts(out.listed, ceiling.open_names);
    }
    add_texts(out.allow_out, policy.allow);
    add_texts(out.allow_out, policy.names);
    add_texts(out.deny_out, policy.deny);
    for (const net::HeaderRules& rules : policy.rules) {
        std::vector<std::string>& names = out.header_rules[to_string(rules.host)];
        for (const net::HeaderRule& header : rules.headers) names.push_back(header.name);
    }
    if (policy.proxy)
        out.egress_proxy = fmt::format("{}:{}", host_text(policy.proxy->host), policy.proxy->port);
    const net::PacketSets sets = net::packet_sets(policy, ceiling);
    out.names_decide = !sets.named.empty() || !sets.tunneled.empty();
    out.resolvers = options.resolvers;
    out.max_connections = options.slot.max_connections;
    out.upload_bytes_s = options.slot.upload_bytes_s;
    out.download_bytes_s = options.slot.download_bytes_s;
    return out;
}

}  // namespace gb
