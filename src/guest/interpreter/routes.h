// SPDX-License-Identifier: Apache-2.0
// The HTTP face of the interpreter: contract 4.1.
#pragma once

#include "guest/interpreter/contexts.h"
#include "http/server.h"

namespace gb::interpreter {

class Routes {
  public:
    explicit Routes(Contexts& contexts) : contexts_(contexts) {}

    awaitable<void> handle(http::Exchange& exchange);

  private:
    awaitable<void> health(http::Exchange& exchange);
    awaitable<void> execute(http::Exchange& exchange);
    awaitable<void> create_context(http::Exchange& exchange);
    awaitable<void> list_contexts(http::Exchange& exchange);
    awaitable<void> restart_context(http::Exchange& exchange, std::string id);
    awaitable<void> remove_context(http::Exchange& exchange, std::string id);

    Contexts& contexts_;
};

}  // namespace gb::interpreter
