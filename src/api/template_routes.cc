// SPDX-License-Identifier: Apache-2.0
// The templates that sandboxes can start from, their names and tags (contract 2.4, 2.6).
#include <boost/json.hpp>

#include "api/api.h"
#include "api/fields.h"
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


Templates::InUse in_use(const Services& services) {
    return [&sandboxes = services.sandboxes](const std::string& build_id) { return sandboxes.uses_build(build_id); };
}

Handler remove_template(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY(co_await services.sandboxes.templates().remove(call.team, call.params["id"], in_use(services)));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

Handler alias(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(StartPoint found,
                         co_await services.sandboxes.templates().find(call.team, call.params["alias"],
                                                                      Templates::Wanted::to_know));
        const bool everybodys = found.snapshot_build.empty();
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(json::object{{"templateID", found.info.id}, {"public", everybodys}}));
    };
}

Handler tags(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto tags, services.sandboxes.templates().tags(call.team, call.params["id"]));
        json::array out;
        for (const TagRecord& tag : tags)
            out.push_back(json::object{
                {"tag", tag.tag}, {"buildID", tag.build_id}, {"createdAt", rfc3339(tag.created_ms)}});
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler assign_tags(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        GB_CO_TRY_ASSIGN(std::string target, Fields(body).required_text("target"));
        GB_CO_TRY_ASSIGN(auto wanted, Fields(body).texts("tags"));
        GB_CO_TRY_ASSIGN(auto done, co_await services.sandboxes.templates().assign_tags(call.team, std::move(target),
                                                                                        std::move(wanted)));
        co_return co_await call.exchange.response.send_json(
            201, json::serialize(json::object{{"tags", json::array(done.tags.begin(), done.tags.end())},
                                              {"buildID", done.build_id}}));
    };
}

Handler remove_tags(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        GB_CO_TRY_ASSIGN(std::string name, Fields(body).required_text("name"));
        GB_CO_TRY_ASSIGN(auto wanted, Fields(body).texts("tags"));
        GB_CO_TRY(co_await services.sandboxes.templates().remove_tags(call.team, std::move(name), std::move(wanted),
                                                                      in_use(services)));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

}  // namespace

void add_template_routes(Router& router, Services services) {
    router.add("POST", "/templates/tags", assign_tags(services));
    router.add("DELETE", "/templates/tags", remove_tags(services));
    router.add("GET", "/templates/{id}/tags", tags(services));
    router.add("GET", "/templates/aliases/{alias}", alias(services));
    router.add("DELETE", "/templates/{id}", remove_template(services));
    router.add("GET", "/templates", [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto templates,
                         co_await offload(services.pool, [&] { return services.sandboxes.node().templates(); }));
        json::array items;
        for (const TemplateInfo& info : templates) items.push_back(template_json(info));
        co_return co_await call.exchange.response.send_json(200, json::serialize(items));
    });
}

}  // namespace gb::api
