// SPDX-License-Identifier: Apache-2.0
#include "control/events.h"

#include <boost/json.hpp>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/ids.h"

namespace gb {
namespace json = boost::json;
namespace {

Event event_of(std::string_view what, const SandboxRecord& record, const json::value& data) {
    Event out;
    out.id = random_uuid();
    out.type = "sandbox.lifecycle." + std::string(what);
    out.time_ms = now_ms();
    out.team_id = record.team_id;
    out.sandbox_id = record.id;
    out.run_id = record.run_id;
    out.template_id = record.template_id;
    out.build_id = record.build_id;
    out.data_json = json::serialize(data);
    return out;
}

json::object execution(const SandboxRun& run) {
    return {{"started_at", rfc3339(run.started_ms)},
            {"vcpu_count", run.cpu_count},
            {"memory_mb", run.memory_mib},
            {"execution_time", run.ended_ms - run.started_ms}};
}

}  // namespace

Event created_event(const SandboxRecord& record) {
    json::object metadata;
    for (const auto& [key, value] : record.metadata) metadata[key] = value;
    return event_of("created", record, json::object{{"sandbox_metadata", std::move(metadata)}});
}

Event resumed_event(const SandboxRecord& record) {
    return event_of("resumed", record, nullptr);
}

Event updated_event(const SandboxRecord& record) {
    return event_of("updated", record, json::object{{"set_timeout", rfc3339(record.ends_ms)}});
}

// Values of headers may be credentials and stay out.
Event network_event(const SandboxRecord& record) {
    json::array hosts;
    for (const HeaderRow& row : record.header_rules)
        if (hosts.empty() || hosts.back() != json::value(row.host)) hosts.emplace_back(row.host);
    json::object network{{"allow_out", json::array(record.allow_out.begin(), record.allow_out.end())},
                         {"deny_out", json::array(record.deny_out.begin(), record.deny_out.end())},
                         {"rules", std::move(hosts)}};
    if (record.allow_internet_access) network["allow_internet_access"] = *record.allow_internet_access;
    if (!record.egress_proxy.address.empty()) network["egress_proxy"] = record.egress_proxy.address;
    return event_of("updated", record, json::object{{"set_network", std::move(network)}});
}

Event killed_event(const SandboxRecord& record, const SandboxRun* run, std::string_view reason) {
    json::object data{{"reason", reason}};
    if (run != nullptr) data["execution"] = execution(*run);
    return event_of("killed", record, data);
}

Event paused_event(const SandboxRecord& record, const SandboxRun& run) {
    return event_of("paused", record, json::object{{"execution", execution(run)}});
}

Event checkpointed_event(const SandboxRecord& record, const BuildRecord& snapshot) {
    return event_of("checkpointed", record,
                    json::object{{"snapshot_template_id", snapshot.template_id}, {"snapshot_build_id", snapshot.id}});
}

Event expiring_event(const SandboxRecord& record, std::int64_t remove_ms) {
    return event_of("expiring", record,
                    json::object{{"paused_at", rfc3339(record.ends_ms)}, {"remove_at", rfc3339(remove_ms)}});
}

Event snapshot_expiring_event(const std::string& team_id, const BuildRecord& snapshot, std::int64_t remove_ms) {
    SandboxRecord source;
    source.id = snapshot.sandbox_id;
    source.team_id = team_id;
    source.template_id = snapshot.template_id;
    source.build_id = snapshot.id;
    return event_of("expiring", source,
                    json::object{{"snapshot_build_id", snapshot.id}, {"remove_at", rfc3339(remove_ms)}});
}

LogEntry lifecycle_entry(const Event& event) {
    const std::string what = event.type.substr(event.type.rfind('.') + 1);
    LogEntry out{.time_ms = event.time_ms,
                 .sandbox_id = event.sandbox_id,
                 .team_id = event.team_id,
                 .level = "info",
                 .message = "sandbox " + what,
                 .fields = {{"logger", "sandbox"}, {"event", what}}};
    boost::system::error_code ec;
    const json::value data = json::parse(event.data_json, ec);
    if (ec || !data.is_object()) return out;
    if (const json::value* end = data.get_object().if_contains("set_timeout");
        end != nullptr && end->is_string()) {
        out.fields["end_at"] = end->get_string();
        out.message = "sandbox timeout moved to " + out.fields["end_at"];
    }
    if (data.get_object().contains("set_network")) out.message = "sandbox network rules replaced";
    if (const json::value* at = data.get_object().if_contains("remove_at");
        at != nullptr && at->is_string()) {
        out.level = "warn";
        out.fields["remove_at"] = at->get_string();
        out.message =
            "sandbox is paused and will be removed at " + out.fields["remove_at"] + " unless it is resumed";
    }
    if (const json::value* reason = data.get_object().if_contains("reason");
        reason != nullptr && reason->is_string()) {
        out.fields["reason"] = reason->get_string();
        out.message += ": " + out.fields["reason"];
    }
    return out;
}

void tell(Change& change, Event event) {
    change.logs.push_back(lifecycle_entry(event));
    change.events.push_back(std::move(event));
}

std::string event_json(const Event& event) {
    boost::system::error_code ec;
    json::value data = json::parse(event.data_json, ec);
    if (ec) data = nullptr;
    return json::serialize(json::object{{"version", "v1"},
                                        {"id", event.id},
                                        {"type", event.type},
                                        {"eventData", std::move(data)},
                                        {"sandboxId", event.sandbox_id},
                                        {"sandboxExecutionId", event.run_id},
                                        {"sandboxTemplateId", event.template_id},
                                        {"sandboxBuildId", event.build_id},
                                        {"sandboxTeamId", event.team_id},
                                        {"timestamp", rfc3339(event.time_ms)}});
}

std::string webhook_signature(std::string_view secret, std::string_view body) {
    return base64url_encode(sha256(std::string(secret) + std::string(body)));
}

}  // namespace gb
