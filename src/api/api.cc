// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/recorded_response.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/error_body.h"
#include "base/error_table.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/keys.h"

namespace gb::api {
namespace {

constexpr int kUnavailableAgainS = 5;  // when it makes sense to come again where something is short or on its way
constexpr double kRequestBurst = 20'000;  // of one team, contract 7.11

Status check_operator(const Services& services, std::string_view token) {
    if (token.empty()) return fail(ErrorCode::unauthenticated, "the header X-Admin-Token is missing");
    if (services.admin_token_hash.empty() ||
        !constant_time_equal(sha256_hex(token), services.admin_token_hash))
        return fail(ErrorCode::unauthenticated, "the header X-Admin-Token holds no valid token");
    return {};
}

// Prometheus can only send its token as a bearer's.
std::string_view operator_token(const http::Headers& headers) {
    if (std::string_view token = headers.get("X-Admin-Token"); !token.empty()) return token;
    std::string_view authorization = headers.get("Authorization");
    constexpr std::string_view kBearer = "Bearer ";
    return authorization.starts_with(kBearer) ? authorization.substr(kBearer.size()) : std::string_view();
}

}  // namespace

Api::Api(Services services) : services_(std::move(services)) {
    router_.add(
        "GET", "/health",
        [](Call& call) -> http::awaitable<Status> {
            co_return co_await call.exchange.response.send(200, {{"Content-Type", "text/plain"}}, "OK");
        },
        Access::open);
    add_sandbox_routes(router_, services_);
    add_lifetime_routes(router_, services_);
    add_evidence_routes(router_, services_);
    add_network_routes(router_, services_);
    add_decision_routes(router_, services_);
    add_secret_routes(router_, services_);
    add_template_routes(router_, services_);
    add_snapshot_routes(router_, services_);
    add_team_routes(router_, services_);
    add_telemetry_routes(router_, services_);
    add_event_routes(router_, services_);
    add_disk_routes(router_, services_);
    add_operator_routes(router_, services_);
}

http::awaitable<Status> Api::dispatch(Call& call, const Route& route, int& retry_after_s) {
    const http::Headers& headers = call.exchange.head.headers;
    if (route.access == Access::admin) GB_CO_TRY(check_operator(services_, operator_token(headers)));
    if (route.access == Access::team_key) {
        const std::string key(headers.get("X-API-Key"));
        if (auto team = authenticate_known(services_.store, key)) {
            call.team = *std::move(team);
        } else {
            GB_CO_TRY_ASSIGN(call.team,
                             co_await offload(services_.pool, [&] { return authenticate(services_.store, key); }));
        }
        const double rate = services_.sandboxes.plans().of(call.team.plan).requests_per_second;
        RateLimit& limit = requests_.try_emplace(call.team.id, rate, kRequestBurst).first->second;
        limit.configure(rate, kRequestBurst);
        if (!limit.take(monotonic_ms())) {
            retry_after_s = limit.retry_after_s();
            co_return fail(ErrorCode::resource_exhausted,
                           "Rate limit exceeded: too many requests of this team, please try again later");
        }
    }
    // A server that has just been started answers at once, also where a machine is not in its hands yet.
    if (auto id = call.params.find("id"); id != call.params.end())
        co_await services_.sandboxes.node().taken_over(Sandboxes::canonical_id(id->second));
    Status done = co_await route.handler(call);
    if (!done && done.error().code == ErrorCode::resource_exhausted)
        retry_after_s = services_.sandboxes.create_retry_after_s(call.team);
    co_return done;
}

http::awaitable<void> Api::handle(http::Exchange& outer) {
    const std::int64_t asked_us = monotonic_us();
    RecordedResponse response(outer.response, random_id(16));
    http::Exchange exchange{std::move(outer.head), std::move(outer.target), outer.peer, outer.body, response};
    const std::string method = exchange.head.method, path = exchange.target.path;
    auto match = router_.match(method, exchange.target);
    std::string error, team, sandbox;
    if (!match) {
        const int code = match.error().code == ErrorCode::unimplemented ? 405 : 404;
        error = match.error().message;
        co_await response.send_json(code, error_body(code, error));
    } else {
        Call call{exchange, {}, std::move(match->params), {}};
        if (auto id = call.params.find("id"); id != call.params.end()) call.sandbox_id = id->second;
        int retry_after_s = 1;
        Status status = co_await dispatch(call, *match->route, retry_after_s);
        team = call.team.slug;
        sandbox = call.sandbox_id;
        if (!status) error = status.error().message;
        if (!status && !response.started()) {
            const int code = http_status(status.error().code);
            http::Headers headers{{"Content-Type", "application/json"}};
            if (code == 503) retry_after_s = kUnavailableAgainS;
            if (code == 429 || code == 503) headers.add("Retry-After", std::to_string(retry_after_s));
            co_await response.send(code, std::move(headers), error_body(code, error));
        }
    }
    const std::int64_t took_us = monotonic_us() - asked_us;
    services_.metrics.count_request(match ? method : "other", match ? match->route->path : "none",
                                    response.status(), static_cast<double>(took_us) / 1e6);
    const auto level = response.status() >= 500 ? log::Level::error : log::Level::debug;
    log::write(level, "request", {{"request", response.request_id()},
                                  {"method", method},
                                  {"path", path},
                                  {"team", team},
                                  {"sandbox", sandbox},
                                  {"status", response.status()},
                                  {"took_us", took_us},
                                  {"error", error}});
}

}  // namespace gb::api
