// The REST control plane: routes, authentication, error envelope. One file per resource adds its routes.
#pragma once

#include <boost/asio/thread_pool.hpp>

#include "api/router.h"
#include "control/sandboxes.h"
#include "http/server.h"
#include "store/store.h"

namespace gb::api {

struct Services {
    Sandboxes& sandboxes;
    Store& store;
    boost::asio::thread_pool& pool;
};

void add_sandbox_routes(Router& router, Services services);    // create, get, list, kill
void add_lifetime_routes(Router& router, Services services);   // connect, timeout, refreshes
void add_evidence_routes(Router& router, Services services);   // isolation and decision log: ours, under /glovebox
void add_template_routes(Router& router, Services services);   // what can be started

class Api {
  public:
    explicit Api(Services services);
    // Answers one request that is not for a sandbox.
    http::awaitable<void> handle(http::Exchange& exchange);

  private:
    http::awaitable<Status> dispatch(http::Exchange& exchange, Router::Match match);

    Services services_;
    Router router_;
};

}  // namespace gb::api
