// SPDX-License-Identifier: Apache-2.0
// Replaces the network of a sandbox (contract 2.6), and says what is in force (ours).
#include <boost/json.hpp>

#include "api/api.h"
#include "api/header_rules.h"
#include "api/network_json.h"
#include "api/network_request.h"
#include "base/offload.h"

namespace gb::api {

namespace json = boost::json;

http::awaitable<Status> check_secrets(Services services, const Call& call, const NetworkRequest& network) {
    const std::vector<std::string> names = secret_names(network);
    if (names.empty()) co_return Status{};
    co_return co_await offload(services.pool,
                               [&] { return services.secrets.check_known(call.team.id, names); });
}

namespace {


Handler replace(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY(services.sandboxes.get(call.team, call.params["id"]));
        GB_CO_TRY_ASSIGN(const std::string body, co_await call.exchange.body.read_all(kMaxRulesBody));
        GB_CO_TRY_ASSIGN(NetworkUpdate update, parse_network_update(body));
        GB_CO_TRY(co_await check_secrets(services, call, update.network));
        GB_CO_TRY(co_await services.sandboxes.set_network(call.team, call.params["id"], std::move(update)));
        co_return co_await call.exchange.response.send(204, {}, "");
    };
}

Handler in_force(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(const SandboxView view, services.sandboxes.get(call.team, call.params["id"]));
        json::object out = recorded_network_json(view.record);
        if (services.sandboxes.is_running(view.record.id)) {
            auto network = co_await offload(
                services.pool, [&] { return services.sandboxes.node().network(view.record.id); });
            if (network)
                out = effective_network_json(*network);
            else if (network.error().code != ErrorCode::not_found)  // it was paused or ended just now
                co_return std::unexpected(network.error());
        }
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

}  // namespace

void add_network_routes(Router& router, Services services) {
    router.add("PUT", "/sandboxes/{id}/network", replace(services));
    router.add("GET", "/glovebox/sandboxes/{id}/network", in_force(services));
}

}  // namespace gb::api
