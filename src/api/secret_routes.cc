// SPDX-License-Identifier: Apache-2.0
// Secrets of a team: made, changed, looked at without their values, removed (contract 2.4, 2.6).
#include <boost/json.hpp>

#include "api/api.h"
#include "api/parameters.h"
#include "api/secret_json.h"
#include "base/offload.h"

namespace gb::api {
namespace {

namespace json = boost::json;
constexpr std::size_t kMaxSecretBody = 256 * 1024;

Handler create_secret(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(const std::string text, co_await call.exchange.body.read_all(kMaxSecretBody));
        GB_CO_TRY_ASSIGN(const SecretBody body, parse_secret(text, SecretRequest::create));
        GB_CO_TRY_ASSIGN(const SecretRecord made, co_await offload(services.pool, [&] {
                             return services.secrets.create(call.team.id, body.name, body.value,
                                                            body.metadata.value_or(Metadata()));
                         }));
        co_return co_await call.exchange.response.send_json(201, json::serialize(secret_json(made)));
    };
}

Handler list_secrets(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        SecretQuery query;
        query.team_id = call.team.id;
        query.after_id = call.exchange.target.get("nextToken");
        if (!query.after_id.empty() && !query.after_id.starts_with("sec_"))
            co_return fail(ErrorCode::invalid_argument, "Invalid next token");
        GB_CO_TRY_ASSIGN(const std::size_t limit, page_limit(call.exchange.target));
        query.limit = limit + 1;  // one more says whether there are more
        GB_CO_TRY_ASSIGN(auto found,
                         co_await offload(services.pool, [&] { return services.secrets.list(query); }));
        http::Headers headers{{"Content-Type", "application/json"}};
        if (found.size() > limit) {
            found.pop_back();
            headers.add("X-Next-Token", found.back().id);
        }
        json::array out;
        for (const SecretRecord& secret : found) out.push_back(secret_json(secret));
        co_return co_await call.exchange.response.send(200, std::move(headers), json::serialize(out));
    };
}

Handler get_secret(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(const SecretRecord found, co_await offload(services.pool, [&] {
                             return services.secrets.get(call.team.id, call.params["secret"]);
                         }));
        co_return co_await call.exchange.response.send_json(200, json::serialize(secret_json(found)));
    };
}

Handler update_secret(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(const std::string text, co_await call.exchange.body.read_all(kMaxSecretBody));
        GB_CO_TRY_ASSIGN(const SecretBody body, parse_secret(text, SecretRequest::update));
        GB_CO_TRY_ASSIGN(const SecretRecord now, co_await offload(services.pool, [&] {
                             return services.secrets.update(call.team.id, call.params["secret"], body.value,
                                                            body.metadata);
                         }));
        co_return co_await call.exchange.response.send_json(200, json::serialize(secret_json(now)));
    };
}

Handler remove_secret(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY(co_await offload(
            services.pool, [&] { return services.secrets.remove(call.team.id, call.params["secret"]); }));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

}  // namespace

void add_secret_routes(Router& router, Services services) {
    router.add("POST", "/secrets", create_secret(services));
    router.add("GET", "/secrets", list_secrets(services));
    router.add("GET", "/secrets/{secret}", get_secret(services));
    router.add("POST", "/secrets/{secret}", update_secret(services));
    router.add("DELETE", "/secrets/{secret}", remove_secret(services));
}

}  // namespace gb::api
