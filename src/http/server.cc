// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <array>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"
#include "base/log.h"
#include "http/server_core.h"

namespace gb::http {
namespace {

}  // namespace

awaitable<Result<std::string>> BodyReader::read_all(std::size_t limit) {
    std::string out;
    for (;;) {
        GB_CO_TRY_ASSIGN(std::string_view piece, co_await next());
        if (piece.empty()) co_return out;
        if (out.size() + piece.size() > limit)
            co_return fail(ErrorCode::too_large, fmt::format("body is larger than {} bytes", limit));
        out.append(piece);
    }
}

awaitable<Status> ResponseWriter::start_with(int status, Headers headers, std::string_view first) {
    GB_CO_TRY(co_await start(status, std::move(headers)));
    co_return co_await write(first);
}

awaitable<Status> ResponseWriter::finish_with(std::string_view last) {
    GB_CO_TRY(co_await write(last));
    co_return co_await finish();
}

awaitable<Result<std::uint64_t>> ResponseWriter::write_from(tcp::socket&, std::uint64_t) {
    co_return 0;
}

awaitable<Status> ResponseWriter::send_json(int status, std::string_view body) {
    Headers headers;
    headers.add("Content-Type", "application/json");
    co_return co_await send(status, std::move(headers), body);
}

namespace detail {

awaitable<void> linger(std::shared_ptr<Stream> stream) {
    asio::steady_timer limit(stream->socket().get_executor());
    limit.expires_after(std::chrono::milliseconds(500));
    limit.async_wait([stream](const boost::system::error_code& ec) {
        if (!ec) stream->close();
    });
    co_await stream->shutdown_send();
    std::array<char, 16384> sink;
    for (int i = 0; i < 64; ++i) {
        auto [ec, n] = co_await stream->read_some(asio::buffer(sink));
        if (ec) break;
    }
    limit.cancel();
}

// `self` is handed over: the object may be gone before this coroutine begins.
awaitable<void> ServerCore::accept(std::shared_ptr<ServerCore> self, std::shared_ptr<tcp::acceptor> acceptor,
                                   Serve serve) {
    asio::steady_timer pause(executor);
    while (!stopped_) {
        auto [ec, socket] = co_await acceptor->async_accept(executor, kErrorTuple);
        if (ec == asio::error::operation_aborted || stopped_) co_return;
        if (ec) {
            // Out of descriptors or memory: waiting helps, giving up would leave a server that looks alive.
            log::warn("accept failed", {{"error", ec.message()}});
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(kErrorTuple);
            continue;
        }
        if (open_.size() >= options.max_connections) continue;
        boost::system::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        const tcp::endpoint peer = socket.remote_endpoint(ignored);
        asio::co_spawn(executor, serve(std::move(socket), peer), [self](const std::exception_ptr& failure) {
            if (failure) std::rethrow_exception(failure);
        });
    }
}

Result<tcp::endpoint> ServerCore::listen(const tcp::endpoint& where, Serve serve) {
    auto acceptor = std::make_shared<tcp::acceptor>(executor);
    boost::system::error_code ec;
    auto failed = [&](std::string_view what) -> std::unexpected<Error> {
        return fail(
            ec == boost::system::errc::address_in_use ? ErrorCode::already_exists : ErrorCode::unavailable,
            fmt::format("{} {}:{}: {}", what, where.address().to_string(), where.port(), ec.message()));
    };
    if (acceptor->open(where.protocol(), ec); ec) return failed("open");
    if (acceptor->set_option(tcp::acceptor::reuse_address(true), ec); ec) return failed("set up");
    if (acceptor->bind(where, ec); ec) return failed("bind");
    if (acceptor->listen(4096, ec); ec) return failed("listen on");
    acceptors_.push_back(acceptor);
    asio::co_spawn(executor, accept(shared_from_this(), acceptor, std::move(serve)), asio::detached);
    return acceptor->local_endpoint(ec);
}

void ServerCore::stop() {
    if (stopped_) return;
    stopped_ = true;
    boost::system::error_code ignored;
    for (auto& acceptor : acceptors_) acceptor->close(ignored);
    for (auto& [id, stream] : open_) {
        stream->socket().shutdown(tcp::socket::shutdown_both, ignored);
        stream->socket().cancel(ignored);
    }
    for (auto& action : on_stop_) action();
}

}  // namespace detail

Server::Server(asio::any_io_executor executor, Handler handler, ServerOptions options)
    : core_(std::make_shared<detail::ServerCore>(std::move(executor), std::move(handler), options)) {}

Server::~Server() {
    stop();
}

Result<tcp::endpoint> Server::listen(const tcp::endpoint& where) {
    // The listener's coroutine holds the core.
    return core_->listen(where, [&core = *core_](tcp::socket socket, tcp::endpoint peer) {
        return core.serve_http1(std::make_shared<TcpStream>(std::move(socket)), peer);
    });
}

awaitable<void> Server::serve(std::shared_ptr<Stream> stream, tcp::endpoint peer) {
    return core_->serve_http1(std::move(stream), peer);
}

std::size_t Server::connections() const {
    return core_->connections();
}

void Server::stop() {
    core_->stop();
}

}  // namespace gb::http
