// The templates that sandboxes can start from (contract 2.4: GET /templates).
#include <boost/json.hpp>

#include "api/api.h"
#include "api/sandbox_json.h"
#include "base/clock.h"
#include "base/offload.h"

namespace gb::api {
namespace {

namespace json = boost::json;

json::object template_json(const TemplateInfo& info) {
    json::object out;
    out["templateID"] = info.id;
    out["buildID"] = info.build_id;
    out["names"] = json::array{info.name};
    out["aliases"] = json::array{info.name};
    out["public"] = true;
    out["cpuCount"] = info.cpu_count;
    out["memoryMB"] = info.memory_mib;
    out["diskSizeMB"] = info.disk_mib;
    out["createdAt"] = rfc3339(info.created_ms);
    out["updatedAt"] = rfc3339(info.created_ms);
    out["createdBy"] = nullptr;
    out["lastSpawnedAt"] = nullptr;
    out["spawnCount"] = 0;
    out["buildCount"] = 1;
    out["buildStatus"] = "ready";
    out["envdVersion"] = kAgentVersion;
    return out;
}

}  // namespace

void add_template_routes(Router& router, Services services) {
    router.add("GET", "/templates", [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto templates,
                         co_await offload(services.pool, [&] { return services.sandboxes.node().templates(); }));
        json::array items;
        for (const TemplateInfo& info : templates) items.push_back(template_json(info));
        co_return co_await call.exchange.response.send_json(200, json::serialize(items));
    });
}

}  // namespace gb::api
