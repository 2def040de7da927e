// SPDX-License-Identifier: Apache-2.0
// The REST control plane: routes, authentication, limits, error envelope. One file per resource adds its routes.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include <boost/asio/thread_pool.hpp>

#include "api/router.h"
#include "api/server_metrics.h"
#include "control/disk_use.h"
#include "control/metering.h"
#include "control/rate_limit.h"
#include "control/sandboxes.h"
#include "control/secrets.h"
#include "control/telemetry.h"
#include "http/server.h"
#include "store/store.h"

namespace gb::api {

struct Services {
    Sandboxes& sandboxes;
    Store& store;
    boost::asio::thread_pool& pool;  // for reads of the store
    ServerMetrics& metrics;
    TelemetryCollector& telemetry;
    DiskUsage& disk;
    Secrets& secrets;
    std::function<std::size_t()> connections;  // open ones, of the server
    Prices prices;
    std::string domain;            // under which sandboxes have host names; empty: none
    bool webhooks_to_private = false;  // whether webhooks may lead to private addresses
    std::string admin_token_hash;  // SHA-256, hex; empty: nobody is the operator
};

void add_sandbox_routes(Router& router, Services services);    // create, get, list, kill
void add_lifetime_routes(Router& router, Services services);   // connect, timeout, refreshes, pause, resume
void add_evidence_routes(Router& router, Services services);   // what really runs it: ours, under /glovebox
void add_network_routes(Router& router, Services services);    // replacing the way out, and what is in force
void add_decision_routes(Router& router, Services services);   // the decision log: ours
void add_secret_routes(Router& router, Services services);     // what header rules may name
void add_template_routes(Router& router, Services services);   // what can be started
void add_snapshot_routes(Router& router, Services services);   // snapshots and forks
void add_team_routes(Router& router, Services services);       // the own team, its metrics and its bill
void add_telemetry_routes(Router& router, Services services);  // metrics and logs of sandboxes
void add_event_routes(Router& router, Services services);      // what happened, and webhooks to be told of it
void add_disk_routes(Router& router, Services services);       // what sandboxes take of the disk, by team
void add_operator_routes(Router& router, Services services);   // teams, keys, plans, bills of all, nodes, metrics

// invalid_argument that names a secret which rules name and the team does not have.
http::awaitable<Status> check_secrets(Services services, const Call& call, const NetworkRequest& network);

class Api {
  public:
    explicit Api(Services services);
    // Answers one request that is not for a sandbox.
    http::awaitable<void> handle(http::Exchange& exchange);

  private:
    http::awaitable<Status> dispatch(Call& call, const Route& route, int& retry_after_s);

    Services services_;
    Router router_;
    std::unordered_map<std::string, RateLimit> requests_;  // by team
};

}  // namespace gb::api
