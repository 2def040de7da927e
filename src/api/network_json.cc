// SPDX-License-Identifier: Apache-2.0
#include "api/network_json.h"

#include <algorithm>

#include <boost/json.hpp>

namespace gb::api {
namespace json = boost::json;
namespace {

json::array list(const std::vector<std::string>& items) {
    return json::array(items.begin(), items.end());
}

void set_or_null(json::object& out, const char* name, const std::string& text) {
    if (text.empty())
        out[name] = nullptr;
    else
        out[name] = text;
}

}  // namespace

json::object effective_network_json(const EffectiveNetwork& network) {
    json::object out{{"inForce", true}};
    out["mode"] = network.only_listed ? "closed" : "open";
    out["closed"] = list(network.closed);
    if (network.only_listed) out["open"] = list(network.listed);
    out["allowOut"] = list(network.allow_out);
    out["denyOut"] = list(network.deny_out);
    json::object rules;
    for (const auto& [host, headers] : network.header_rules) rules[host] = list(headers);
    out["headers"] = std::move(rules);
    set_or_null(out, "egressProxy", network.egress_proxy);
    out["namesDecide"] = network.names_decide;
    out["resolvers"] = list(network.resolvers);
    out["maxConnections"] = network.max_connections;
    out["uploadBytesPerSecond"] = network.upload_bytes_s;
    out["downloadBytesPerSecond"] = network.download_bytes_s;
    return out;
}

json::object recorded_network_json(const SandboxRecord& record) {
    json::object out{{"inForce", false}};
    out["allowOut"] = list(record.allow_out);
    json::array denied = list(record.deny_out);
    if (record.allow_internet_access == false &&
        std::ranges::find(record.deny_out, "0.0.0.0/0") == record.deny_out.end())
        denied.emplace_back("0.0.0.0/0");
    out["denyOut"] = std::move(denied);
    json::object rules;
    for (const HeaderRow& row : record.header_rules) {
        if (!rules.contains(row.host)) rules[row.host] = json::array();
        rules[row.host].get_array().emplace_back(row.name);
    }
    out["headers"] = std::move(rules);
    set_or_null(out, "egressProxy", record.egress_proxy.address);
    return out;
}

}  // namespace gb::api
