// SPDX-License-Identifier: Apache-2.0
// For measurements: the control plane and the ingress as `glovebox serve` runs them, above a node whose sandboxes cost
// nothing. Every sandbox's ports lead to the same ports of this host's loopback.
//
//   control_bench_server DATA_DIR SANDBOXES ENGINE_MS      prints one line of JSON, runs until SIGTERM
//
// SANDBOXES are there from the beginning; making another one costs the engine ENGINE_MS, in which it waits.
#include <csignal>
#include <cstdlib>
#include <iostream>


#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/open_files.h"
#include "control/fake_node.h"
#include "control/keys.h"
#include "control/secrets.h"
#include "ingress/proxy.h"
#include "ingress/signed_url.h"

namespace {

namespace asio = boost::asio;
using namespace gb;

// FakeNode connects while the loop waits, which is no way to serve.
class BenchNode final : public FakeNode {
  public:
    asio::awaitable<Result<asio::ip::tcp::socket>> connect(std::string id, std::uint16_t port) override {
        if (!machines.contains(id)) co_return fail(ErrorCode::not_found, "no such sandbox");
        asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
        boost::system::error_code ec;
        co_await socket.async_connect({asio::ip::address_v4::loopback(), port},
                                      asio::redirect_error(asio::use_awaitable, ec));
        if (ec) co_return fail(ErrorCode::unavailable, ec.message());
        co_return socket;
    }
};

asio::awaitable<void> fill(Sandboxes& sandboxes, Team team, int count, std::function<void()> ready) {
    CreateSandbox request;
    request.template_ref = "base";
    request.timeout_s = 3600;
    request.metadata = {{"purpose", "measurement"}};
    for (int i = 0; i < count; ++i) {
        auto made = co_await sandboxes.create(team, request);
        if (!made) throw std::runtime_error(made.error().message);
        if (i == 0) std::cout << fmt::format(R"({{"sandbox":"{}",)", made->record.id);
    }
    ready();
}

int serve(const std::filesystem::path& data, int count, int engine_ms) {
    log::set_level(log::Level::error);
    raise_open_files();
    asio::io_context io(1);
    asio::thread_pool readers(2);
    auto store = open_sqlite_store(data / "bench.db");
    if (!store || !ensure_default_key(**store, data / "api-key")) return 1;
    std::string key = read_file(data / "api-key").value_or("");
    while (!key.empty() && key.back() == '\n') key.pop_back();
    auto team = authenticate(**store, key);
    if (!team) return 1;
    BenchNode node;
    Plans plans;
    plans.set({.name = "pro",
               .max_sandboxes = 100'000,
               .max_lifetime_s = 86'400,
               .creates_per_second = 1e6,
               .requests_per_second = 1e6});
    Sandboxes sandboxes(io.get_executor(), readers, **store, node, {"seed", plans});
    if (!sandboxes.start()) return 1;
    ingress::Proxy proxy(sandboxes);
    sandboxes.on_gone([&](const std::string& id) { proxy.cut(id); });
    DiskUsage disk(io.get_executor(), readers, **store, node);
    TelemetryCollector telemetry(io.get_executor(), readers, sandboxes, **store);  // not run: nothing to ask
    const Sealer sealer(random_bytes(32));
    Secrets secrets(**store, sealer);
    api::ServerMetrics metrics;
    api::Api api({.sandboxes = sandboxes,
                  .store = **store,
                  .pool = readers,
                  .metrics = metrics,
                  .telemetry = telemetry,
                  .disk = disk,
                  .secrets = secrets,
                  .connections = {},
                  .prices = {},
                  .domain = {},
                  .admin_token_hash = {}});
    http::ServerOptions options;
    options.max_connections = 100'000;
    http::Server server(
        io.get_executor(),
        [&](http::Exchange& exchange) -> asio::awaitable<void> {
            auto route = ingress::find_route(exchange.head);
            if (route && *route)
                co_await proxy.handle(exchange, **route);
            else
                co_await api.handle(exchange);
        },
        options);
    auto bound = server.listen({asio::ip::address_v4::loopback(), 0});
    if (!bound) return 1;
    asio::co_spawn(io, fill(sandboxes, *team, count, [&] {
                       node.create_delay_ms = engine_ms;
                       std::cout << fmt::format(R"("port":{},"key":"{}"}})", bound->port(), key) << std::endl;
                   }),
                   [](const std::exception_ptr& failure) {
                       if (failure) std::rethrow_exception(failure);
                   });
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
    io.run();
    readers.join();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: control_bench_server DATA_DIR SANDBOXES ENGINE_MS\n";
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    return serve(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
}
