// SPDX-License-Identifier: Apache-2.0
#include "api/usage_json.h"

#include <boost/json.hpp>

#include "base/clock.h"

namespace gb::api {
namespace json = boost::json;
namespace {

json::object amounts(const Usage& usage, const Prices& prices) {
    const std::int64_t cpu = usage.vcpu_cost_nano(prices), memory = usage.memory_cost_nano(prices);
    return {{"runs", usage.runs},
            {"seconds", static_cast<double>(usage.run_ms) / 1000},
            {"vcpuSeconds", usage.vcpu_seconds()},
            {"gibSeconds", usage.gib_seconds()},
            {"vcpuUSD", dollars(cpu)},
            {"memoryUSD", dollars(memory)},
            {"totalUSD", dollars(cpu + memory)}};
}

}  // namespace

json::object usage_json(std::span<const SandboxUsageRow> rows, const TimeWindow& window, const Prices& prices) {
    Usage total;
    json::array sandboxes;
    for (const SandboxUsageRow& row : rows) {
        total += row.usage;
        json::object item = amounts(row.usage, prices);
        item["teamID"] = row.team_id;
        item["sandboxID"] = row.sandbox_id;
        item["templateID"] = row.template_id;
        sandboxes.push_back(std::move(item));
    }
    json::object out{{"start", rfc3339(window.from_ms)}, {"end", rfc3339(window.to_ms)}};
    out["total"] = amounts(total, prices);
    out["sandboxes"] = std::move(sandboxes);
    return out;
}

}  // namespace gb::api
