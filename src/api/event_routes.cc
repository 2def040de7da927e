// SPDX-License-Identifier: Apache-2.0
// What happened to sandboxes, and webhooks that are told of it (contract 7.10).
#include <algorithm>
#include <limits>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "api/parameters.h"
#include "api/webhook_request.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/offload.h"
#include "control/events.h"
#include "control/webhook_target.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr std::size_t kMostWebhooks = 100;  // of one team

Result<EventQuery> parse_query(const Call& call) {
    const http::Target& target = call.exchange.target;
    EventQuery query;
    query.team_id = call.team.id;
    GB_TRY_ASSIGN(auto limit, number_parameter(target, "limit", 1, 100));
    GB_TRY_ASSIGN(auto offset, number_parameter(target, "offset", 0, 1'000'000'000));
    query.limit = static_cast<std::size_t>(limit.value_or(10));
    query.offset = static_cast<std::size_t>(offset.value_or(0));
    const std::string order = target.get("orderAsc");
    if (!order.empty() && order != "true" && order != "false") return bad_parameter("orderAsc", "true or false");
    query.ascending = order == "true";
    for (const auto& [name, value] : target.query) {
        if (name != "types") continue;
        for (std::string_view rest = value; !rest.empty();) {
            std::string_view type = rest.substr(0, rest.find(','));
            rest = type.size() == rest.size() ? std::string_view() : rest.substr(type.size() + 1);
            if (std::ranges::find(kEventTypes, type) == kEventTypes.end())
                return bad_parameter("types", fmt::format("a list of event types, and '{}' is none", type));
            query.types.emplace_back(type);
        }
    }
    if (auto id = call.params.find("id"); id != call.params.end()) query.sandbox_id = Sandboxes::canonical_id(id->second);
    return query;
}

Handler events(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(EventQuery query, parse_query(call));
        GB_CO_TRY_ASSIGN(auto list, co_await offload(services.pool, [&] { return services.store.events(query); }));
        std::string body = "[";
        for (const Event& event : list) {
            if (body.size() > 1) body += ',';
            body += event_json(event);
        }
        co_return co_await call.exchange.response.send_json(200, body + "]");
    };
}

// The warning is ours: what its maker should know.
json::object webhook_json(const Webhook& webhook, std::string_view warning = {}) {
    json::object out{{"id", webhook.id},
                     {"teamId", webhook.team_id},
                     {"name", webhook.name},
                     {"createdAt", rfc3339(webhook.created_ms)},
                     {"enabled", webhook.enabled},
                     {"url", webhook.url},
                     {"events", json::array(webhook.events.begin(), webhook.events.end())}};
    if (!warning.empty()) out["warning"] = warning;
    return out;
}

PrivateTargets private_targets(const Services& services) {
    return services.webhooks_to_private ? PrivateTargets::allowed : PrivateTargets::refused;
}

http::awaitable<Result<Webhook>> find_webhook(Services services, Call& call) {
    GB_CO_TRY_ASSIGN(auto list,
                     co_await offload(services.pool, [&] { return services.store.webhooks(call.team.id); }));
    auto found = std::ranges::find(list, call.params["webhook"], &Webhook::id);
    if (found == list.end()) co_return fail(ErrorCode::not_found, "no such webhook");
    co_return std::move(*found);
}

Handler create_webhook(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        Webhook webhook;
        webhook.id = random_uuid();
        webhook.team_id = call.team.id;
        webhook.created_ms = now_ms();
        GB_CO_TRY(apply_webhook_request(text, WebhookRequest::create, webhook));
        GB_CO_TRY_ASSIGN(const std::string warning, co_await check_webhook_target(webhook.url, private_targets(services)));
        GB_CO_TRY_ASSIGN(auto list,
                         co_await offload(services.pool, [&] { return services.store.webhooks(call.team.id); }));
        if (list.size() >= kMostWebhooks)
            co_return fail(ErrorCode::invalid_argument,
                           fmt::format("a team has at most {} webhooks: delete one first", kMostWebhooks));
        GB_CO_TRY(co_await offload(services.pool, [&] { return services.store.put_webhook(webhook); }));
        co_return co_await call.exchange.response.send_json(201, json::serialize(webhook_json(webhook, warning)));
    };
}

Handler list_webhooks(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(auto list,
                         co_await offload(services.pool, [&] { return services.store.webhooks(call.team.id); }));
        json::array out;
        for (const Webhook& webhook : list) out.push_back(webhook_json(webhook));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler get_webhook(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(Webhook webhook, co_await find_webhook(services, call));
        co_return co_await call.exchange.response.send_json(200, json::serialize(webhook_json(webhook)));
    };
}

Handler change_webhook(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(Webhook webhook, co_await find_webhook(services, call));
        const Webhook before = webhook;
        GB_CO_TRY(apply_webhook_request(text, WebhookRequest::change, webhook));
        // One that was taken when private addresses were allowed can still be renamed or disabled.
        const bool begins = webhook.url != before.url || (webhook.enabled && !before.enabled);
        std::string warning;
        if (begins) {
            GB_CO_TRY_ASSIGN(warning, co_await check_webhook_target(webhook.url, private_targets(services)));
        }
        GB_CO_TRY(co_await offload(services.pool, [&] { return services.store.put_webhook(webhook); }));
        co_return co_await call.exchange.response.send_json(200, json::serialize(webhook_json(webhook, warning)));
    };
}

// Ours: what is on its way or was given up, with the last error.
Handler list_deliveries(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
        GB_CO_TRY_ASSIGN(const std::size_t limit, page_limit(call.exchange.target));
        GB_CO_TRY_ASSIGN(const auto before, number_parameter(call.exchange.target, "nextToken", 0, kLast));
        GB_CO_TRY_ASSIGN(Webhook webhook, co_await find_webhook(services, call));
        GB_CO_TRY_ASSIGN(auto list, co_await offload(services.pool, [&] {  // one more says whether there are more
                             return services.store.deliveries(webhook.id, limit + 1, before.value_or(kLast));
                         }));
        http::Headers headers{{"Content-Type", "application/json"}};
        if (list.size() > limit) {
            list.pop_back();
            headers.add("X-Next-Token", std::to_string(list.back().place));
        }
        json::array out;
        for (const DeliveryStatus& delivery : list) {
            json::object row{{"id", delivery.id},
                             {"state", !delivery.next_ms           ? "given up"
                                       : delivery.attempts > 0     ? "failing"
                                                                   : "waiting"},
                             {"eventId", delivery.event_id},
                             {"eventType", delivery.event_type},
                             {"sandboxId", delivery.sandbox_id},
                             {"timestamp", rfc3339(delivery.event_ms)},
                             {"attempts", delivery.attempts},
                             {"lastAttemptAt", nullptr},
                             {"nextAttemptAt", nullptr},
                             {"lastError", nullptr}};
            if (delivery.attempts > 0) {
                row["lastAttemptAt"] = rfc3339(delivery.tried_ms);
                row["lastError"] = delivery.last_error;
            }
            if (delivery.next_ms) row["nextAttemptAt"] = rfc3339(*delivery.next_ms);
            out.push_back(std::move(row));
        }
        co_return co_await call.exchange.response.send(200, std::move(headers), json::serialize(out));
    };
}

Handler delete_webhook(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY(co_await offload(services.pool, [&] {
            return services.store.remove_webhook(call.team.id, call.params["webhook"]);
        }));
        co_return co_await call.exchange.response.send_json(200, "{}");
    };
}

}  // namespace

void add_event_routes(Router& router, Services services) {
    router.add("GET", "/events/sandboxes", events(services));
    router.add("GET", "/events/sandboxes/{id}", events(services));
    router.add("POST", "/events/webhooks", create_webhook(services));
    router.add("GET", "/events/webhooks", list_webhooks(services));
    router.add("GET", "/events/webhooks/{webhook}", get_webhook(services));
    router.add("GET", "/events/webhooks/{webhook}/deliveries", list_deliveries(services));
    router.add("PATCH", "/events/webhooks/{webhook}", change_webhook(services));
    router.add("DELETE", "/events/webhooks/{webhook}", delete_webhook(services));
}

}  // namespace gb::api
