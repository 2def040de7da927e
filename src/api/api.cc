#include "api/api.h"

#include "base/error_table.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/keys.h"

namespace gb::api {

Api::Api(Services services) : services_(services) {
    router_.add(
        "GET", "/health",
        [](Call& call) -> http::awaitable<Status> {
            co_return co_await call.exchange.response.send(200, {{"Content-Type", "text/plain"}}, "OK");
        },
        Access::open);
    add_sandbox_routes(router_, services_);
    add_lifetime_routes(router_, services_);
    add_evidence_routes(router_, services_);
    add_template_routes(router_, services_);
}

http::awaitable<Status> Api::dispatch(http::Exchange& exchange, Router::Match match) {
    Call call{exchange, {}, std::move(match.params)};
    if (match.route->access == Access::team_key) {
        std::string key(exchange.head.headers.get("X-API-Key"));
        GB_CO_TRY_ASSIGN(call.team, co_await offload(services_.pool, [&] { return authenticate(services_.store, key); }));
    }
    co_return co_await match.route->handler(call);
}

http::awaitable<void> Api::handle(http::Exchange& exchange) {
    auto match = router_.match(exchange.head.method, exchange.target);
    if (!match) {
        int code = match.error().code == ErrorCode::unimplemented ? 405 : 404;
        co_await exchange.response.send_json(code, error_body(code, match.error().message));
        co_return;
    }
    Status status = co_await dispatch(exchange, *std::move(match));
    if (status || exchange.response.started()) co_return;
    const Error& error = status.error();
    const int code = http_status(error.code);
    if (code >= 500)
        log::error("request failed", {{"method", exchange.head.method}, {"path", exchange.target.path}, {"error", error.message}});
    http::Headers headers{{"Content-Type", "application/json"}};
    if (code == 429) headers.add("Retry-After", "1");
    co_await exchange.response.send(code, std::move(headers), error_body(code, error.message));
}

}  // namespace gb::api
