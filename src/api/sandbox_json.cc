// SPDX-License-Identifier: Apache-2.0
#include "api/sandbox_json.h"

#include <boost/json.hpp>

#include "base/clock.h"

namespace gb::api {
namespace json = boost::json;

namespace {

void set_domain(json::object& out, const std::string& domain) {
    if (domain.empty())
        out["domain"] = nullptr;
    else
        out["domain"] = domain;
}

}  // namespace

json::object sandbox_json(const SandboxView& view, const std::string& domain) {
    json::object out;
    out["sandboxID"] = view.record.id;
    out["templateID"] = view.record.template_id;
    if (!view.record.template_name.empty()) out["alias"] = view.record.template_name;
    out["clientID"] = kClientId;
    out["envdVersion"] = kAgentVersion;
    if (!view.access_token.empty()) out["envdAccessToken"] = view.access_token;
    if (view.traffic_token.empty())
        out["trafficAccessToken"] = nullptr;
    else
        out["trafficAccessToken"] = view.traffic_token;
    set_domain(out, domain);
    return out;
}

json::object listed_sandbox_json(const SandboxRecord& record) {
    json::object out;
    out["sandboxID"] = record.id;
    out["templateID"] = record.template_id;
    if (!record.template_name.empty()) out["alias"] = record.template_name;
    out["clientID"] = kClientId;
    out["envdVersion"] = kAgentVersion;
    out["cpuCount"] = record.cpu_count;
    out["memoryMB"] = record.memory_mib;
    out["diskSizeMB"] = record.disk_mib;
    out["startedAt"] = rfc3339(record.started_ms);
    out["endAt"] = rfc3339(record.ends_ms);
    out["state"] = shown_as(record.state) == Shown::running ? "running" : "paused";
    json::object metadata;
    for (const auto& [key, value] : record.metadata) metadata[key] = value;
    out["metadata"] = std::move(metadata);
    return out;
}

json::object sandbox_detail_json(const SandboxView& view, const std::string& domain) {
    json::object out = listed_sandbox_json(view.record);
    if (!view.access_token.empty()) out["envdAccessToken"] = view.access_token;
    set_domain(out, domain);
    if (view.record.allow_internet_access)
        out["allowInternetAccess"] = *view.record.allow_internet_access;
    else
        out["allowInternetAccess"] = nullptr;
    out["lifecycle"] = {{"autoResume", view.record.auto_resume},
                        {"onTimeout", view.record.auto_pause ? "pause" : "kill"}};
    if (!view.record.network_json.empty()) {
        boost::system::error_code ec;
        json::value network = json::parse(view.record.network_json, ec);
        if (!ec) out["network"] = std::move(network);
    }
    return out;
}

}  // namespace gb::api
