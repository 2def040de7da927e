// SPDX-License-Identifier: Apache-2.0
// Copies of running sandboxes: snapshots and forks (contract 2.4, 2.6).
#include <algorithm>
#include <climits>

#include <boost/json.hpp>

#include "api/api.h"
#include "api/fields.h"
#include "api/parameters.h"
#include "api/sandbox_json.h"
#include "base/error_table.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr int kForkTimeout = 15;  // seconds, unless the client says one

json::object snapshot_json(const Snapshot& snapshot) {
    return {{"snapshotID", snapshot.id},
            {"names", json::array(snapshot.names.begin(), snapshot.names.end())}};
}

Handler take(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, true));
        GB_CO_TRY_ASSIGN(auto name, Fields(body).text("name"));
        if (name && name->empty())
            co_return fail(ErrorCode::invalid_argument, "validation error: field 'name' is empty");
        GB_CO_TRY_ASSIGN(auto memory, Fields(body).boolean("memory"));
        const PauseMode mode = memory.value_or(true) ? PauseMode::with_memory : PauseMode::filesystem_only;
        GB_CO_TRY_ASSIGN(Snapshot snapshot, co_await services.sandboxes.snapshot(call.team, call.params["id"],
                                                                                 name.value_or(""), mode));
        co_return co_await call.exchange.response.send_json(201, json::serialize(snapshot_json(snapshot)));
    };
}

Handler list_snapshots(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        const http::Target& target = call.exchange.target;
        SnapshotQuery query;
        GB_CO_TRY_ASSIGN(query.limit, page_limit(target));
        query.sandbox_id = Sandboxes::canonical_id(target.get("sandboxID"));
        query.name = target.get("name");
        query.next_token = target.get("nextToken");
        GB_CO_TRY_ASSIGN(SnapshotPage page, services.sandboxes.templates().snapshots(call.team, query));
        json::array items;
        for (const Snapshot& snapshot : page.items) items.push_back(snapshot_json(snapshot));
        http::Headers headers{{"Content-Type", "application/json"}};
        if (!page.next_token.empty()) headers.add("X-Next-Token", page.next_token);
        co_return co_await call.exchange.response.send(200, std::move(headers), json::serialize(items));
    };
}

Handler fork(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, true));
        GB_CO_TRY_ASSIGN(auto count, Fields(body).integer("count"));
        GB_CO_TRY_ASSIGN(auto timeout, Fields(body).integer("timeout"));
        const auto wanted = static_cast<int>(std::clamp<std::int64_t>(count.value_or(1), 0, INT_MAX));
        GB_CO_TRY_ASSIGN(auto forks, co_await services.sandboxes.fork(call.team, call.params["id"], wanted,
                                                                      timeout.value_or(kForkTimeout)));
        json::array out;
        for (const Result<SandboxView>& made : forks) {
            if (made) {
                out.push_back(json::object{{"sandbox", sandbox_json(*made, services.domain)}});
            } else {
                out.push_back(json::object{{"error", json::object{{"code", http_status(made.error().code)},
                                                                  {"message", made.error().message}}}});
            }
        }
        co_return co_await call.exchange.response.send_json(201, json::serialize(out));
    };
}

}  // namespace

void add_snapshot_routes(Router& router, Services services) {
    router.add("POST", "/sandboxes/{id}/snapshots", take(services));
    router.add("GET", "/snapshots", list_snapshots(services));
    router.add("POST", "/sandboxes/{id}/fork", fork(services));
}

}  // namespace gb::api
