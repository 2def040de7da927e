// SPDX-License-Identifier: Apache-2.0
// What sandboxes use and what they log, during the retention also of those that have ended
// (contract 2.4, 2.6).
#include <algorithm>
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "api/parameters.h"
#include "api/telemetry_json.h"
#include "base/clock.h"
#include "base/offload.h"
#include "control/sandbox_metrics.h"
#include "control/team_metrics.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr std::int64_t kMaxMs = 253'402'300'799'999;  // the end of the year 9999
constexpr std::int64_t kMostEntries = 1000;
constexpr std::size_t kMostIds = 100;

// The id of a sandbox that the team has or had; not_found otherwise.
http::awaitable<Result<std::string>> known_sandbox(Services services, Call& call) {
    const std::string id = Sandboxes::canonical_id(call.params["id"]);
    const auto view = services.sandboxes.get(call.team, id);
    if (view) co_return id;
    EventQuery query;  // its events are kept as long as its metrics and logs
    query.team_id = call.team.id;
    query.sandbox_id = id;
    query.limit = 1;
    GB_CO_TRY_ASSIGN(auto events,
                     co_await offload(services.pool, [&] { return services.store.events(query); }));
    if (events.empty()) co_return std::unexpected(view.error());
    co_return id;
}

// Brings the store up to date with a sandbox that runs.
http::awaitable<void> freshen(Services services, const Call& call, const std::string& id) {
    const auto view = services.sandboxes.get(call.team, id);
    if (view && services.sandboxes.is_running(id)) co_await services.telemetry.collect_now(view->record);
}

Handler sandbox_metrics(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        const http::Target& target = call.exchange.target;
        GB_CO_TRY_ASSIGN(auto start, number_parameter(target, "start", 0, kMaxMs / 1000));
        GB_CO_TRY_ASSIGN(auto end, number_parameter(target, "end", 0, kMaxMs / 1000));
        if (start && end && *start > *end) co_return bad_parameter("start", "before 'end'");
        GB_CO_TRY_ASSIGN(const std::string id, co_await known_sandbox(services, call));
        MetricQuery query{.sandbox_id = id};
        if (start) query.from_ms = *start * 1000;
        if (end) query.to_ms = *end * 1000 + 999;  // the whole second
        GB_CO_TRY_ASSIGN(auto points,
                         co_await offload(services.pool, [&]() -> Result<std::vector<MetricPoint>> {
                             GB_TRY_ASSIGN(auto all, services.store.metrics(query));
                             if (all.empty()) return all;
                             // Without a range it is what there is.
                             const TimeRange range{start ? query.from_ms : all.front().time_ms,
                                                   end ? query.to_ms : all.back().time_ms};
                             return averages(all, metric_step_ms(range));
                         }));
        json::array out;
        for (const MetricPoint& point : points) out.push_back(metric_json(point));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler latest_metrics(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        std::vector<std::string> ids;
        for (const std::string& id : list_parameter(call.exchange.target, "sandbox_ids"))
            ids.push_back(Sandboxes::canonical_id(id));
        if (ids.empty() || ids.size() > kMostIds)
            co_return bad_parameter("sandbox_ids", fmt::format("a list of 1 to {} ids", kMostIds));
        GB_CO_TRY_ASSIGN(auto points,
                         co_await offload(services.pool, [&] { return services.store.latest_metrics(ids); }));
        json::object sandboxes;
        for (const MetricPoint& point : points)
            if (point.team_id == call.team.id) sandboxes[point.sandbox_id] = metric_json(point);
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(json::object{{"sandboxes", std::move(sandboxes)}}));
    };
}

http::awaitable<Result<std::vector<LogEntry>>> find_entries(Services services, Call& call, LogQuery query) {
    GB_CO_TRY_ASSIGN(query.sandbox_id, co_await known_sandbox(services, call));
    co_await freshen(services, call, query.sandbox_id);
    co_return co_await offload(services.pool, [&] { return services.store.logs(query); });
}

Result<std::size_t> entry_limit(const http::Target& target) {
    GB_TRY_ASSIGN(auto limit, number_parameter(target, "limit", 0, kMostEntries));
    return static_cast<std::size_t>(limit.value_or(kMostEntries));
}

// Oldest first: clients follow a log by asking for what comes after their last line.
Handler logs_v1(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        LogQuery query;
        GB_CO_TRY_ASSIGN(query.limit, entry_limit(call.exchange.target));
        GB_CO_TRY_ASSIGN(auto start, number_parameter(call.exchange.target, "start", 0, kMaxMs));
        query.from_ms = start.value_or(0);
        GB_CO_TRY_ASSIGN(auto entries, co_await find_entries(services, call, std::move(query)));
        json::array lines, structured;
        for (const LogEntry& entry : entries) {
            lines.push_back(json::object{{"timestamp", rfc3339(entry.time_ms)}, {"line", log_line(entry)}});
            structured.push_back(log_entry_json(entry));
        }
        co_return co_await call.exchange.response.send_json(
            200,
            json::serialize(json::object{{"logs", std::move(lines)}, {"logEntries", std::move(structured)}}));
    };
}

Result<LogQuery> parse_log_query(const http::Target& target) {
    LogQuery query;
    GB_TRY_ASSIGN(query.limit, entry_limit(target));
    GB_TRY_ASSIGN(auto cursor, number_parameter(target, "cursor", 0, kMaxMs));
    const std::string direction = target.get("direction");
    if (!direction.empty() && direction != "forward" && direction != "backward")
        return bad_parameter("direction", "'forward' or 'backward'");
    query.newest_first = direction != "forward";
    if (cursor) (query.newest_first ? query.to_ms : query.from_ms) = *cursor;
    query.least_level = target.get("level");
    constexpr std::array<std::string_view, 5> kLevels{"", "debug", "info", "warn", "error"};
    if (std::ranges::find(kLevels, query.least_level) == kLevels.end())
        return bad_parameter("level", "'debug', 'info', 'warn' or 'error'");
    query.search = target.get("search");
    return query;
}

Handler logs_v2(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(LogQuery query, parse_log_query(call.exchange.target));
        GB_CO_TRY_ASSIGN(auto entries, co_await find_entries(services, call, std::move(query)));
        json::array out;
        for (const LogEntry& entry : entries) out.push_back(log_entry_json(entry));
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(json::object{{"logs", std::move(out)}}));
    };
}

}  // namespace

void add_telemetry_routes(Router& router, Services services) {
    router.add("GET", "/sandboxes/metrics", latest_metrics(services));
    router.add("GET", "/sandboxes/{id}/metrics", sandbox_metrics(services));
    router.add("GET", "/sandboxes/{id}/logs", logs_v1(services));
    router.add("GET", "/v2/sandboxes/{id}/logs", logs_v2(services));
}

}  // namespace gb::api
