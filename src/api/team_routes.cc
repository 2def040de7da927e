// SPDX-License-Identifier: Apache-2.0
// The team that asks: who it is, how many sandboxes it ran, what it used (contract 2.4 teams, 7.11).
#include <boost/json.hpp>

#include "api/api.h"
#include "api/parameters.h"
#include "api/plan_json.h"
#include "api/usage_json.h"
#include "base/clock.h"
#include "base/offload.h"
#include "control/team_metrics.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kUsageWindowMs = 30 * 24 * kHourMs;

Status own_team(const Call& call) {
    if (call.params.at("team") == call.team.id) return {};
    return fail(ErrorCode::permission_denied, "the API key belongs to another team");
}

http::awaitable<Result<std::vector<TeamPoint>>> points(Services services, Call& call) {
    GB_CO_TRY(own_team(call));
    const std::int64_t now = now_ms();
    GB_CO_TRY_ASSIGN(TimeWindow window, time_window(call.exchange.target, now, kHourMs));
    GB_CO_TRY_ASSIGN(auto runs, co_await offload(services.pool, [&] {
                         return services.store.runs(call.team.id, window.from_ms, window.to_ms);
                     }));
    co_return team_points(runs, {window.from_ms, window.to_ms}, now);
}

Handler teams() {
    return [](Call& call) -> http::awaitable<Status> {
        // The key that was sent is the only one that can be shown: the server keeps none.
        json::object team{{"teamID", call.team.id},
                          {"name", call.team.name},
                          {"apiKey", call.exchange.head.headers.get("X-API-Key")},
                          {"isDefault", true}};
        co_return co_await call.exchange.response.send_json(200, json::serialize(json::array{std::move(team)}));
    };
}

Handler team_metrics(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto list, co_await points(services, call));
        json::array out;
        for (const TeamPoint& point : list)
            out.push_back(json::object{{"timestamp", rfc3339(point.time_ms)},
                                       {"timestampUnix", point.time_ms / 1000},
                                       {"concurrentSandboxes", point.concurrent},
                                       {"sandboxStartRate", point.start_rate}});
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler most(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        const std::string metric = call.exchange.target.get("metric");
        const bool concurrent = metric == "concurrent_sandboxes";
        if (!concurrent && metric != "sandbox_start_rate")
            co_return bad_parameter("metric", "'concurrent_sandboxes' or 'sandbox_start_rate'");
        GB_CO_TRY_ASSIGN(auto list, co_await points(services, call));
        const TeamPoint point = concurrent ? most_concurrent(list) : quickest_start(list);
        const std::int64_t at = list.empty() ? now_ms() : point.time_ms;
        json::object out{{"timestamp", rfc3339(at)}, {"timestampUnix", at / 1000}};
        if (concurrent)
            out["value"] = point.concurrent;
        else
            out["value"] = point.start_rate;
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler own_usage(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        const std::int64_t now = now_ms();
        GB_CO_TRY_ASSIGN(TimeWindow window, time_window(call.exchange.target, now, kUsageWindowMs));
        GB_CO_TRY_ASSIGN(auto runs, co_await offload(services.pool, [&] {
                             return services.store.runs(call.team.id, window.from_ms, window.to_ms);
                         }));
        const auto rows = usage_by_sandbox(runs, window.from_ms, window.to_ms, now);
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(usage_json(rows, window, services.prices)));
    };
}

// Clients need it to ask for the longest run that they may have.
Handler own_plan(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        const Plan& plan = services.sandboxes.plans().of(call.team.plan);
        co_return co_await call.exchange.response.send_json(200, json::serialize(plan_json(plan)));
    };
}

}  // namespace

void add_team_routes(Router& router, Services services) {
    router.add("GET", "/teams", teams());
    router.add("GET", "/teams/{team}/metrics", team_metrics(services));
    router.add("GET", "/teams/{team}/metrics/max", most(services));
    router.add("GET", "/glovebox/usage", own_usage(services));
    router.add("GET", "/glovebox/plan", own_plan(services));
}

}  // namespace gb::api
