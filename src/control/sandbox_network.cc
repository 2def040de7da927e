// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox_network.h"

#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace gb {
namespace json = boost::json;
namespace {

constexpr std::array<std::string_view, 4> kEgressFields{"allowOut", "denyOut", "rules", "egressProxy"};

std::string owner_of_password(const SandboxRecord& record) {
    return fmt::format("egress proxy {} {}", record.team_id, record.id);
}

std::unexpected<Error> no_key() {
    return fail(ErrorCode::failed_precondition, "this server has no key to keep secrets with");
}

json::object object_of(const std::string& text) {
    boost::system::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_object()) return {};
    return std::move(value.get_object());
}

}  // namespace

Status put_network(SandboxRecord& record, const net::NetworkRequest& network, const Sealer* sealer) {
    EgressProxyRow proxy;
    if (network.egress_proxy) {
        proxy = {network.egress_proxy->address, network.egress_proxy->username, ""};
        if (!network.egress_proxy->password.empty()) {
            if (sealer == nullptr) return no_key();
            auto sealed = sealer->seal(network.egress_proxy->password, owner_of_password(record));
            if (!sealed) return std::unexpected(sealed.error().with("the password of the egress proxy"));
            proxy.sealed_password = *std::move(sealed);
        }
    }
    record.allow_internet_access = network.allow_internet_access;
    record.allow_out = network.allow_out;
    record.deny_out = network.deny_out;
    record.header_rules.clear();
    for (const auto& [host, headers] : network.rules)
        for (const net::HeaderRule& header : headers)
            record.header_rules.push_back({host, header.name, header.value});
    record.egress_proxy = std::move(proxy);
    return {};
}

Result<net::NetworkRequest> network_of(const SandboxRecord& record, const Sealer* sealer) {
    net::NetworkRequest out;
    out.allow_internet_access = record.allow_internet_access;
    out.allow_out = record.allow_out;
    out.deny_out = record.deny_out;
    for (const HeaderRow& row : record.header_rules) out.rules[row.host].push_back({row.name, row.value});
    const EgressProxyRow& proxy = record.egress_proxy;
    if (proxy.address.empty()) return out;
    out.egress_proxy = net::ProxyRequest{proxy.address, proxy.username, ""};
    if (proxy.sealed_password.empty()) return out;
    if (sealer == nullptr) return no_key();
    auto password = sealer->unseal(proxy.sealed_password, owner_of_password(record));
    if (!password) return std::unexpected(password.error().with("the password of the egress proxy"));
    out.egress_proxy->password = *std::move(password);
    return out;
}

void copy_network(const SandboxRecord& from, SandboxRecord& to) {
    to.allow_internet_access = from.allow_internet_access;
    to.network_json = from.network_json;
    to.allow_out = from.allow_out;
    to.deny_out = from.deny_out;
    to.header_rules = from.header_rules;
    to.egress_proxy = from.egress_proxy;
}

std::string with_egress(const std::string& network_json, const std::string& egress_json) {
    json::object network = object_of(network_json);
    json::object egress = object_of(egress_json);
    for (std::string_view field : kEgressFields) {
        network.stable_erase(field);
        if (json::value* given = egress.if_contains(field)) network[field] = std::move(*given);
    }
    return network.empty() ? "" : json::serialize(network);
}

}  // namespace gb
