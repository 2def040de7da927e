#include "api/sandbox_json.h"

#include <boost/json.hpp>

#include "base/clock.h"

namespace gb::api {
namespace json = boost::json;

json::object sandbox_json(const SandboxView& view) {
    json::object out;
    out["sandboxID"] = view.record.id;
    out["templateID"] = view.record.template_id;
    if (!view.record.template_name.empty()) out["alias"] = view.record.template_name;
    out["clientID"] = kClientId;
    out["envdVersion"] = kAgentVersion;
    if (!view.access_token.empty()) out["envdAccessToken"] = view.access_token;
    out["trafficAccessToken"] = nullptr;
    out["domain"] = nullptr;
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
    out["state"] = "running";
    json::object metadata;
    for (const auto& [key, value] : record.metadata) metadata[key] = value;
    out["metadata"] = std::move(metadata);
    return out;
}

json::object sandbox_detail_json(const SandboxView& view) {
    json::object out = listed_sandbox_json(view.record);
    if (!view.access_token.empty()) out["envdAccessToken"] = view.access_token;
    out["domain"] = nullptr;
    if (view.record.allow_internet_access)
        out["allowInternetAccess"] = *view.record.allow_internet_access;
    else
        out["allowInternetAccess"] = nullptr;
    out["lifecycle"] = {{"autoResume", false}, {"onTimeout", "kill"}};
    if (!view.record.network_json.empty()) {
        boost::system::error_code ec;
        json::value network = json::parse(view.record.network_json, ec);
        if (!ec) out["network"] = std::move(network);
    }
    return out;
}

}  // namespace gb::api
