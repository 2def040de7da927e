// SPDX-License-Identifier: Apache-2.0
// How long a sandbox lives: connect, timeout, refreshes, pause, resume (contract 2.6, 7.1, 7.2).
#include <algorithm>

#include <boost/json.hpp>

#include "api/api.h"
#include "api/fields.h"
#include "api/sandbox_json.h"

namespace gb::api {
namespace {

namespace json = boost::json;

enum class Timeout { required, optional };

Handler connect(Services services, Timeout rule) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, rule == Timeout::optional));
        GB_CO_TRY_ASSIGN(auto timeout, Fields(body).integer("timeout"));
        if (!timeout && rule == Timeout::required)
            co_return fail(ErrorCode::invalid_argument, "validation error: field 'timeout' is required");
        GB_CO_TRY_ASSIGN(auto memory, Fields(body).boolean("memory"));
        GB_CO_TRY_ASSIGN(SandboxView view,
                         co_await services.sandboxes.connect(
                             call.team, call.params["id"], timeout.value_or(300),
                             memory.value_or(true) ? Sandboxes::Memory::kept : Sandboxes::Memory::dropped));
        co_return co_await call.exchange.response.send_json(
            view.resumed ? 201 : 200, json::serialize(sandbox_json(view, services.domain)));
    };
}

Handler resume(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, true));
        GB_CO_TRY_ASSIGN(auto timeout, Fields(body).integer("timeout"));
        GB_CO_TRY_ASSIGN(SandboxView view,
                         co_await services.sandboxes.resume(call.team, call.params["id"], timeout.value_or(15)));
        co_return co_await call.exchange.response.send_json(201, json::serialize(sandbox_json(view, services.domain)));
    };
}

Handler pause(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, true));
        GB_CO_TRY_ASSIGN(auto memory, Fields(body).boolean("memory"));
        const PauseMode mode = memory.value_or(true) ? PauseMode::with_memory : PauseMode::filesystem_only;
        GB_CO_TRY_ASSIGN(auto strict, Fields(body).boolean("strict"));
        GB_CO_TRY(co_await services.sandboxes.pause(
            call.team, call.params["id"], mode,
            strict.value_or(false) ? Sandboxes::Guest::must_answer : Sandboxes::Guest::any));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

Handler set_timeout(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, false));
        GB_CO_TRY_ASSIGN(auto timeout, Fields(body).integer("timeout"));
        if (!timeout) co_return fail(ErrorCode::invalid_argument, "validation error: field 'timeout' is required");
        GB_CO_TRY(co_await services.sandboxes.set_timeout(call.team, call.params["id"], *timeout));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

Handler refresh(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(std::string text, co_await call.exchange.body.read_all(kMaxBody));
        GB_CO_TRY_ASSIGN(json::object body, parse_object(text, true));
        GB_CO_TRY_ASSIGN(auto duration, Fields(body).integer("duration"));
        const auto seconds = std::clamp<std::int64_t>(duration.value_or(15), 15, 3600);
        GB_CO_TRY(co_await services.sandboxes.extend(call.team, call.params["id"], seconds));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

}  // namespace

void add_lifetime_routes(Router& router, Services services) {
    router.add("POST", "/sandboxes/{id}/connect", connect(services, Timeout::required));
    router.add("POST", "/v2/sandboxes/{id}/connect", connect(services, Timeout::optional));
    router.add("POST", "/sandboxes/{id}/resume", resume(services));
    router.add("POST", "/sandboxes/{id}/pause", pause(services));
    router.add("POST", "/sandboxes/{id}/timeout", set_timeout(services));
    router.add("POST", "/sandboxes/{id}/refreshes", refresh(services));
}

}  // namespace gb::api
