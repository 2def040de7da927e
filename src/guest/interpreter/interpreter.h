// SPDX-License-Identifier: Apache-2.0
// The whole server: contexts, routes and the listening socket on one io_context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "guest/interpreter/contexts.h"
#include "guest/interpreter/routes.h"
#include "http/server.h"

namespace gb::interpreter {

class Interpreter {
  public:
    Interpreter(asio::io_context& io, InterpreterOptions options);

    // Listens, then starts the default contexts. Returns where it listens; port 0 picks a free one.
    Result<http::tcp::endpoint> start(const std::string& address, std::uint16_t port);
    // Ends every kernel and connection; io.run() returns soon afterwards.
    void stop();

  private:
    asio::io_context& io_;
    Contexts contexts_;
    Routes routes_;
    http::Server server_;
};

}  // namespace gb::interpreter
