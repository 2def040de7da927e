// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/interpreter.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

namespace gb::interpreter {

Interpreter::Interpreter(asio::io_context& io, InterpreterOptions options)
    : io_(io),
      contexts_(io.get_executor(), std::move(options)),
      routes_(contexts_),
      server_(io.get_executor(), [this](http::Exchange& exchange) { return routes_.handle(exchange); }) {}

Result<http::tcp::endpoint> Interpreter::start(const std::string& address, std::uint16_t port) {
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(address, error);
    if (error) return fail(ErrorCode::invalid_argument, fmt::format("'{}' is not an IP address", address));
    GB_TRY_ASSIGN(http::tcp::endpoint where, server_.listen({ip, port}));
    // Only who owns the port may touch the run folder: another server's kernels would be taken for
    // left-overs.
    contexts_.clean_up();
    asio::co_spawn(io_, contexts_.start_defaults(), asio::detached);
    return where;
}

void Interpreter::stop() {
    server_.stop();
    contexts_.close_all();
}

}  // namespace gb::interpreter
