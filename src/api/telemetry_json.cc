// SPDX-License-Identifier: Apache-2.0
#include "api/telemetry_json.h"

#include <cmath>

#include <boost/json.hpp>

#include "base/clock.h"

namespace gb::api {
namespace json = boost::json;

json::object metric_json(const MetricPoint& point) {
    return {{"timestamp", rfc3339(point.time_ms)}, {"timestampUnix", point.time_ms / 1000},
            {"cpuCount", point.cpu_count},         {"cpuUsedPct", std::round(point.cpu_used_pct * 100) / 100},
            {"memUsed", point.mem_used},           {"memTotal", point.mem_total},
            {"memCache", point.mem_cache},         {"diskUsed", point.disk_used},
            {"diskTotal", point.disk_total}};
}

json::object log_entry_json(const LogEntry& entry) {
    json::object fields;
    for (const auto& [name, value] : entry.fields) fields[name] = value;
    return {{"timestamp", rfc3339(entry.time_ms)},
            {"level", entry.level},
            {"message", entry.message},
            {"fields", std::move(fields)}};
}

std::string log_line(const LogEntry& entry) {
    json::object out;
    for (const auto& [name, value] : entry.fields) out[name] = value;
    // After the fields, which must not replace them.
    out["timestamp"] = rfc3339(entry.time_ms);
    out["level"] = entry.level;
    out["message"] = entry.message;
    if (!out.contains("logger")) out["logger"] = "sandbox";
    return json::serialize(out);
}

}  // namespace gb::api
