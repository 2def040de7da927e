// SPDX-License-Identifier: Apache-2.0
// What really runs a sandbox. Our own route: the contract has none for this.
#include <boost/json.hpp>

#include "api/api.h"
#include "base/offload.h"

namespace gb::api {
namespace {

namespace json = boost::json;

Handler isolation(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(SandboxView view, services.sandboxes.get(call.team, call.params["id"]));
        GB_CO_TRY_ASSIGN(Isolation facts, services.sandboxes.node().isolation(view.record.id));
        GB_CO_TRY_ASSIGN(SandboxUsage usage, co_await offload(services.pool, [&] {
                             return services.sandboxes.node().usage(view.record.id);
                         }));
        json::object out{{"sandboxID", view.record.id},
                         {"class", facts.isolation_class},
                         {"accelerator", facts.accelerator},
                         {"acceleratorReason", facts.accelerator_reason},
                         {"vmm", facts.vmm},
                         {"guestKernel", facts.guest_kernel},
                         {"hostKernel", facts.host_kernel},
                         {"privateBytes", usage.private_bytes}};
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

}  // namespace

void add_evidence_routes(Router& router, Services services) {
    router.add("GET", "/glovebox/sandboxes/{id}/isolation", isolation(services));
}

}  // namespace gb::api
