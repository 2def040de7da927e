// SPDX-License-Identifier: Apache-2.0
// Create, get, list and kill sandboxes (contract 2.4, 2.6).
#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "api/create_request.h"
#include "api/network_request.h"
#include "api/parameters.h"
#include "api/sandbox_json.h"
#include "base/clock.h"

namespace gb::api {
namespace {

namespace json = boost::json;

Handler create_sandbox(Services services, Generation generation) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string body, co_await call.exchange.body.read_all(kMaxRulesBody));
        GB_CO_TRY_ASSIGN(CreateSandbox request, parse_create(body, generation));
        GB_CO_TRY(co_await check_secrets(services, call, request.network));
        GB_CO_TRY_ASSIGN(SandboxView view, co_await services.sandboxes.create(call.team, std::move(request)));
        call.sandbox_id = view.record.id;
        co_return co_await call.exchange.response.send_json(201, json::serialize(sandbox_json(view, services.domain)));
    };
}

// Which states the state parameter, one comma-joined value or several, admits. Absent: all.
Status parse_states(const http::Target& target, ListQuery& query) {
    bool seen = false, running = false, paused = false;
    for (const auto& [name, value] : target.query) {
        if (name != "state") continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            std::string_view state = rest.substr(0, rest.find(','));
            rest = state.size() == rest.size() ? std::string_view() : rest.substr(state.size() + 1);
            if (state != "running" && state != "paused")
                return fail(ErrorCode::invalid_argument,
                            fmt::format("validation error: parameter 'state' must be running or paused, not '{}'", state));
            seen = true;
            (state == "running" ? running : paused) = true;
        }
    }
    if (seen) {
        query.running = running;
        query.paused = paused;
    }
    return {};
}

Result<ListQuery> parse_query(const http::Target& target) {
    ListQuery query;
    GB_TRY_ASSIGN(query.limit, page_limit(target));
    if (const std::string* order = target.find("order")) {
        if (*order != "asc" && *order != "desc") return bad_parameter("order", "'asc' or 'desc'");
        query.ascending = *order == "asc";
    }
    if (const std::string* after = target.find("startedAfter")) {
        query.started_after_ms = parse_rfc3339(*after);
        if (!query.started_after_ms) return bad_parameter("startedAfter", "a date and time of RFC 3339");
    }
    if (const std::string* metadata = target.find("metadata")) {
        GB_TRY_ASSIGN(query.metadata, parse_metadata_filter(*metadata));
    }
    if (const std::string* name = target.find("template")) query.template_ref = *name;
    query.next_token = target.get("nextToken");
    GB_TRY(parse_states(target, query));
    return query;
}

enum class Listing { all_running, paged };  // of the first generation, of the second

Handler list_sandboxes(Services services, Listing kind) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(ListQuery query, parse_query(call.exchange.target));
        if (kind == Listing::all_running) {
            query.limit = SIZE_MAX;
            query.next_token.clear();
            query.running = true;
            query.paused = false;
        }
        GB_CO_TRY_ASSIGN(ListPage page, services.sandboxes.list(call.team, query));
        json::array items;
        for (const SandboxRecord& record : page.items) items.push_back(listed_sandbox_json(record));
        http::Headers headers{{"Content-Type", "application/json"}};
        if (kind == Listing::paged) headers.add("X-Total-Running", std::to_string(page.running));
        if (!page.next_token.empty()) headers.add("X-Next-Token", page.next_token);
        co_return co_await call.exchange.response.send(200, std::move(headers), json::serialize(items));
    };
}

Handler get_sandbox(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(SandboxView view, services.sandboxes.get(call.team, call.params["id"]));
        co_return co_await call.exchange.response.send_json(200, json::serialize(sandbox_detail_json(view, services.domain)));
    };
}

Handler kill_sandbox(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY(co_await services.sandboxes.kill(call.team, call.params["id"]));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

}  // namespace

void add_sandbox_routes(Router& router, Services services) {
    router.add("POST", "/sandboxes", create_sandbox(services, Generation::v1));
    router.add("POST", "/v2/sandboxes", create_sandbox(services, Generation::v2));
    router.add("GET", "/sandboxes", list_sandboxes(services, Listing::all_running));
    router.add("GET", "/v2/sandboxes", list_sandboxes(services, Listing::paged));
    router.add("GET", "/sandboxes/{id}", get_sandbox(services));
    router.add("DELETE", "/sandboxes/{id}", kill_sandbox(services));
}

}  // namespace gb::api
