// SPDX-License-Identifier: Apache-2.0
// For the operator: teams and their plans, keys, the bill of everybody, the machine, metrics. Ours, except /api-keys,
// which the contract knows with X-Team-ID.
#include <algorithm>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "api/fields.h"
#include "api/parameters.h"
#include "api/plan_json.h"
#include "api/usage_json.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/offload.h"
#include "control/keys.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr std::int64_t kMonthMs = 30LL * 24 * 3'600'000;

json::object team_json(const Team& team) {
    return {{"teamID", team.id}, {"name", team.name}, {"slug", team.slug}, {"plan", team.plan}};
}

bool is_slug(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
}

Status check_team(const Services& services, const Team& team) {
    auto wrong = [](std::string_view field, std::string what) {
        return fail(ErrorCode::invalid_argument, fmt::format("validation error: field '{}' {}", field, what));
    };
    if (team.name.empty() || team.name.size() > 128) return wrong("name", "must have 1 to 128 characters");
    if (!is_slug(team.slug)) return wrong("slug", "must have 1 to 64 of a-z, 0-9, - and _");
    if (services.sandboxes.plans().find(team.plan) != nullptr) return {};
    std::string known;
    for (const Plan& plan : services.sandboxes.plans().all()) known += (known.empty() ? "" : ", ") + plan.name;
    return wrong("plan", fmt::format("names no plan of the configuration; there are {}", known));
}

http::awaitable<Result<Team>> find_team(Services services, std::string id) {
    GB_CO_TRY_ASSIGN(auto teams, co_await offload(services.pool, [&] { return services.store.teams(); }));
    auto found = std::ranges::find_if(teams, [&](const Team& team) { return team.id == id || team.slug == id; });
    if (found == teams.end()) co_return fail(ErrorCode::not_found, fmt::format("no team '{}'", id));
    co_return std::move(*found);
}

Handler list_teams(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto teams, co_await offload(services.pool, [&] { return services.store.teams(); }));
        json::array out;
        for (const Team& team : teams) out.push_back(team_json(team));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler create_team(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        Fields fields(body);
        Team team;
        team.id = random_uuid();
        GB_CO_TRY_ASSIGN(team.name, fields.required_text("name"));
        GB_CO_TRY_ASSIGN(auto slug, fields.text("slug"));
        GB_CO_TRY_ASSIGN(auto plan, fields.text("plan"));
        team.slug = slug.value_or(team.name);
        team.plan = plan.value_or("hobby");
        GB_CO_TRY(check_team(services, team));
        Status added = co_await offload(services.pool, [&] { return services.store.add_team(team); });
        if (!added && added.error().code == ErrorCode::already_exists)
            co_return fail(ErrorCode::already_exists, fmt::format("there is a team with the slug '{}'", team.slug));
        GB_CO_TRY(added);
        co_return co_await call.exchange.response.send_json(201, json::serialize(team_json(team)));
    };
}

Handler change_team(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        GB_CO_TRY_ASSIGN(Team team, co_await find_team(services, call.params["team"]));
        Fields fields(body);
        GB_CO_TRY_ASSIGN(auto name, fields.text("name"));
        GB_CO_TRY_ASSIGN(auto plan, fields.text("plan"));
        if (name) team.name = *name;
        if (plan) team.plan = *plan;
        GB_CO_TRY(check_team(services, team));
        GB_CO_TRY(co_await offload(services.pool, [&] { return services.store.update_team(team); }));
        co_return co_await call.exchange.response.send_json(200, json::serialize(team_json(team)));
    };
}

// Of a new key the whole text, once.
json::object key_json(const ApiKey& key) {
    const std::size_t cut = key.mask.find("…");
    std::string first = key.mask.substr(0, cut), last;
    if (cut != std::string::npos) last = key.mask.substr(cut + std::string_view("…").size());
    constexpr std::size_t kPrefix = 4;  // "e2b_"
    return {{"id", key.id},
            {"name", key.name},
            {"mask", json::object{{"prefix", first.substr(0, kPrefix)},
                                  {"valueLength", 40},
                                  {"maskedValuePrefix", first.size() > kPrefix ? first.substr(kPrefix) : ""},
                                  {"maskedValueSuffix", last}}},
            {"createdAt", rfc3339(key.created_ms)},
            {"createdBy", nullptr},
            {"lastUsed", nullptr}};
}

std::string team_of(Call& call) {
    auto found = call.params.find("team");
    return found != call.params.end() ? found->second : std::string(call.exchange.head.headers.get("X-Team-ID"));
}

Handler list_keys(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(Team team, co_await find_team(services, team_of(call)));
        GB_CO_TRY_ASSIGN(auto keys, co_await offload(services.pool, [&] { return services.store.api_keys(team.id); }));
        json::array out;
        for (const ApiKey& key : keys) out.push_back(key_json(key));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler create_key(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        GB_CO_TRY_ASSIGN(std::string name, Fields(body).required_text("name"));
        GB_CO_TRY_ASSIGN(Team team, co_await find_team(services, team_of(call)));
        const NewKey made = make_api_key(team.id, name);
        GB_CO_TRY(co_await offload(services.pool, [&] { return services.store.add_api_key(made.row); }));
        json::object out = key_json(made.row);
        out["key"] = made.key;
        co_return co_await call.exchange.response.send_json(201, json::serialize(out));
    };
}

Handler revoke_key(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(Team team, co_await find_team(services, team_of(call)));
        GB_CO_TRY(co_await offload(services.pool,
                                   [&] { return services.store.remove_api_key(team.id, call.params["key"]); }));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

Handler usage(Services services, bool csv) {
    return [=](Call& call) -> http::awaitable<Status> {
        const std::int64_t now = now_ms();
        GB_CO_TRY_ASSIGN(TimeWindow window, time_window(call.exchange.target, now, kMonthMs));
        std::string team_id;
        if (const std::string* id = call.exchange.target.find("team")) {
            GB_CO_TRY_ASSIGN(Team team, co_await find_team(services, *id));
            team_id = team.id;
        }
        GB_CO_TRY_ASSIGN(auto runs, co_await offload(services.pool, [&] {
                             return services.store.runs(team_id, window.from_ms, window.to_ms);
                         }));
        const auto rows = usage_by_sandbox(runs, window.from_ms, window.to_ms, now);
        if (csv)
            co_return co_await call.exchange.response.send(
                200,
                {{"Content-Type", "text/csv; charset=utf-8"},
                 {"Content-Disposition", "attachment; filename=\"usage.csv\""}},
                usage_csv(rows, services.prices));
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(usage_json(rows, window, services.prices)));
    };
}

Handler plans(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        json::array out;
        for (const Plan& plan : services.sandboxes.plans().all()) out.push_back(plan_json(plan));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler nodes(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(NodeInfo info,
                         co_await offload(services.pool, [&] { return services.sandboxes.node().info(); }));
        const Sandboxes::Counts counts = services.sandboxes.counts();
        json::object warm;
        for (const auto& [name, count] : info.warm)
            if (count > 0) warm[name] = count;
        json::object node{{"id", info.id},
                          {"status", "ready"},
                          {"accelerator", info.accelerator},
                          {"vmm", info.vmm},
                          {"cpuCount", info.cpu_count},
                          {"memoryMB", info.memory_mib},
                          {"memoryAvailableMB", info.memory_available_mib},
                          {"memoryReserveMB", info.memory_reserve_mib},
                          {"diskAvailableMB", info.disk_available_mib},
                          {"sandboxCount", counts.running},
                          {"sandboxPausedCount", counts.paused},
                          {"sandboxInTransitionCount", counts.in_transition},
                          {"warm", std::move(warm)}};
        co_return co_await call.exchange.response.send_json(200, json::serialize(json::array{std::move(node)}));
    };
}

Handler server_metrics(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(NodeInfo info,
                         co_await offload(services.pool, [&] { return services.sandboxes.node().info(); }));
        const Sandboxes::Counts counts = services.sandboxes.counts();
        ServerMetrics::Gauges gauges;
        gauges.running = counts.running;
        gauges.paused = counts.paused;
        gauges.in_transition = counts.in_transition;
        gauges.connections = services.connections ? services.connections() : 0;
        gauges.memory_available_bytes = info.memory_available_mib << 20;
        gauges.disk_available_bytes = info.disk_available_mib << 20;
        gauges.warm = info.warm;
        gauges.creates_from_pool = info.creates_from_pool;
        gauges.creates_from_restore = info.creates_from_restore;
        // A scrape comes often, and looking at all files is not free. Without an answer the rest is still
        // true.
        if (auto rows = co_await services.disk.read(std::chrono::minutes(1)))
            for (const TeamDisk& row : **rows)
                gauges.team_disk_bytes[row.team.slug] = row.bytes();
        co_return co_await call.exchange.response.send(
            200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, services.metrics.text(gauges));
    };
}

}  // namespace

void add_operator_routes(Router& router, Services services) {
    auto add = [&](const char* method, const char* path, Handler handler) {
        router.add(method, path, std::move(handler), Access::admin);
    };
    add("GET", "/glovebox/teams", list_teams(services));
    add("POST", "/glovebox/teams", create_team(services));
    add("PATCH", "/glovebox/teams/{team}", change_team(services));
    add("GET", "/glovebox/teams/{team}/keys", list_keys(services));
    add("POST", "/glovebox/teams/{team}/keys", create_key(services));
    add("DELETE", "/glovebox/teams/{team}/keys/{key}", revoke_key(services));
    add("GET", "/api-keys", list_keys(services));
    add("POST", "/api-keys", create_key(services));
    add("DELETE", "/api-keys/{key}", revoke_key(services));
    add("GET", "/glovebox/plans", plans(services));
    add("GET", "/glovebox/usage/all", usage(services, false));
    add("GET", "/glovebox/usage/all.csv", usage(services, true));
    add("GET", "/nodes", nodes(services));
    add("GET", "/metrics", server_metrics(services));
}

}  // namespace gb::api
