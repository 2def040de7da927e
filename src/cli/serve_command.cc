// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"
#include "base/error_table.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/open_files.h"
#include "base/seal.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/server_config.h"
#include "control/housekeeping.h"
#include "control/keys.h"
#include "control/sandboxes.h"
#include "control/secrets.h"
#include "control/telemetry.h"
#include "control/webhooks.h"
#include "http/server.h"
#include "http/tls.h"
#include "ingress/proxy.h"
#include "ingress/signed_url.h"
#include "node/local_node.h"
#include "store/store.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::ip::tcp;

enum class OnStop {
    by_signal,  // Ctrl-C ends the sandboxes; a service manager's SIGTERM leaves them to the next server
    keep,
    end,
};

struct ServeOptions {
    NodeOptions node = default_node_options();
    fs::path config_file;
    std::optional<std::string> address;  // these two go before the configuration
    std::optional<std::uint16_t> port;
    OnStop on_stop = OnStop::by_signal;
    unsigned workers = 8;
    std::optional<EgressMode> egress;  // goes before the configuration too
    std::optional<std::size_t> pool;  // what `most` is where the configuration does not say
    std::string log_level = "info";
};

// The secret from which the tokens of sandboxes are derived: made once, readable by root alone.
Result<std::string> token_seed(const fs::path& data_dir) {
    const fs::path file = data_dir / "token-seed";
    auto text = read_file(file);
    if (text && text->size() >= 64) return text->substr(0, 64);
    if (!text && text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
    std::string seed = random_hex(32);
    GB_TRY(write_file_atomic(file, seed + "\n", 0600));
    return seed;
}

// Sandbox traffic and control plane share one port: what names a sandbox is the ingress's.
http::Handler front_door(api::Api& api, ingress::Proxy& proxy, const Sandboxes& sandboxes) {
    return [&](http::Exchange& exchange) -> asio::awaitable<void> {
        auto route = ingress::find_route(exchange.head);
        if (route && !*route) route = ingress::find_signed_route(exchange, sandboxes);
        if (!route) {
            ingress::Reply reply = ingress::refusal(route.error());
            co_await exchange.response.send(reply.status, {{"Content-Type", reply.content_type}}, reply.body);
        } else if (*route) {
            co_await proxy.handle(exchange, **route);
        } else {
            co_await api.handle(exchange);
        }
    };
}

Result<tcp::endpoint> parse_endpoint(const std::string& text, std::uint16_t port) {
    boost::system::error_code ec;
    asio::ip::address address = asio::ip::make_address(text, ec);
    if (ec)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("listen: '{}' is not an IP address, e.g. 127.0.0.1 or 0.0.0.0", text));
    return tcp::endpoint(address, port);
}

Status listen_plain(http::Server& server, const tcp::endpoint& where, tcp::endpoint& bound) {
    auto result = server.listen(where);
    if (!result && result.error().code == ErrorCode::already_exists)
        return fail(ErrorCode::already_exists,
                    fmt::format("port {} of {} is taken by another program: stop it, or choose another port with "
                                "--port",
                                where.port(), where.address().to_string()));
    if (!result) return std::unexpected(result.error());
    bound = *result;
    return {};
}

// Where names of sandboxes lead to: TLS for {port}-{id}.<domain> and api.<domain>.
Status listen_tls(http::Server& server, const ServerConfig& config) {
    if (!config.tls) return {};
    GB_TRY_ASSIGN(tcp::endpoint where, parse_endpoint(config.tls->address, config.tls->port));
    GB_TRY_ASSIGN(auto tls, http::ServerTls::load({config.tls->certificate, config.tls->key}));
    auto bound = server.listen_tls(where, std::move(tls));
    if (!bound && bound.error().code == ErrorCode::already_exists)
        return fail(ErrorCode::already_exists,
                    fmt::format("port {} of {}, which 'tls' wants, is taken by another program", where.port(),
                                config.tls->address));
    if (!bound) return std::unexpected(bound.error());
    fmt::print("domain:    https://api.{0}{1}, sandboxes at https://<port>-<id>.{0}{1}\n", config.domain,
               bound->port() == 443 ? "" : fmt::format(":{}", bound->port()));
    return {};
}

enum class Sandboxing { keep, end };

// Ends the sandboxes or leaves them, then waits until no connection refers to anything of the server's any more.
asio::awaitable<void> shut_down(http::Server& server, Sandboxes& sandboxes, Sandboxing what) {
    if (what == Sandboxing::end)
        co_await sandboxes.kill_all();
    else
        co_await sandboxes.leave_running();
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (int i = 0; i < 250 && server.connections() > 0; ++i) {
        pause.expires_after(std::chrono::milliseconds(20));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

// Machines that were taken over run on when the server cannot start after all.
class Hold {
  public:
    explicit Hold(Node& node) : node_(&node) {}
    ~Hold() {
        if (node_ != nullptr) node_->leave_running();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void release() { node_ = nullptr; }

  private:
    Node* node_;
};

Status serve(const ServeOptions& options) {
    GB_TRY_ASSIGN(ServerConfig config, load_server_config(options.config_file));
    const std::string address = options.address.value_or(config.address.value_or("127.0.0.1"));
    GB_TRY_ASSIGN(tcp::endpoint where,
                  parse_endpoint(address, options.port.value_or(config.port.value_or(3000))));
    asio::io_context io(1);
    asio::thread_pool pool(options.workers);
    asio::thread_pool readers(2);  // of the store: never behind what the machines' work keeps busy
    NodeOptions node_options = options.node;
    GB_TRY_ASSIGN(node_options.warm, warm_options(config.pool, options.pool));
    GB_TRY_ASSIGN(node_options.network, network_options(config.egress, options.egress));
    std::error_code no_exe;
    if (config.prepare_on_demand) node_options.prepare_program = fs::read_symlink("/proc/self/exe", no_exe);
    std::unique_ptr<Store> store;  // these outlive the node, which asks for secrets
    std::shared_ptr<const Sealer> sealer;
    std::unique_ptr<Secrets> secrets;
    GB_TRY_ASSIGN(auto node, LocalNode::open(io.get_executor(), pool, std::move(node_options)));
    Hold hold(*node);
    GB_TRY_ASSIGN(store, open_sqlite_store(options.node.data_dir / "glovebox.db"));
    // A key that is lost or broken is an error of what needs it.
    sealer = std::make_shared<const Sealer>(Sealer::open(options.node.data_dir / "secret-key"));
    if (Status usable = sealer->usable(); !usable)
        log::error("secrets cannot be used", {{"error", usable.error().message}});
    secrets = std::make_unique<Secrets>(*store, *sealer);
    node->use_secrets([&secrets = *secrets](const std::string& sandbox_id, const std::string& name) {
        return secrets.value_for(sandbox_id, name);
    });
    GB_TRY(ensure_default_key(*store, key_file(options.node)));
    GB_TRY_ASSIGN(std::string admin_token_hash, ensure_admin_token(admin_token_file(options.node)));
    GB_TRY_ASSIGN(std::string seed, token_seed(options.node.data_dir));

    Sandboxes sandboxes(io.get_executor(), readers, *store, *node,
                        {seed, config.plans, config.retention, sealer});
    GB_TRY(sandboxes.start());
    TelemetryCollector telemetry(io.get_executor(), readers, sandboxes, *store);
    sandboxes.before_end([&](SandboxRecord record) { return telemetry.collect_last(std::move(record)); });
    ingress::Proxy proxy(sandboxes);
    sandboxes.on_gone([&](const std::string& id) { proxy.cut(id); });
    api::ServerMetrics metrics;
    DiskUsage disk(io.get_executor(), readers, *store, *node);
    http::Server* listening = nullptr;  // the server refers to the handlers, and they ask it this one thing
    api::Api api({.sandboxes = sandboxes,
                  .store = *store,
                  .pool = readers,
                  .metrics = metrics,
                  .telemetry = telemetry,
                  .disk = disk,
                  .secrets = *secrets,
                  .connections = [&] { return listening != nullptr ? listening->connections() : 0; },
                  .prices = config.prices,
                  .domain = config.domain,
                  .webhooks_to_private = config.webhooks_to_private,
                  .admin_token_hash = admin_token_hash});
    http::Server server(io.get_executor(), front_door(api, proxy, sandboxes));
    listening = &server;
    tcp::endpoint bound;
    GB_TRY(listen_plain(server, where, bound));
    asio::cancellation_signal over, telemetry_over, retention_over;  // a signal has one slot
    Webhooks webhooks(io.get_executor(), *store, readers, {.sender = {.allow_private = config.webhooks_to_private}});
    webhooks.start();
    asio::co_spawn(io,
                   keep_house(*store, readers, {.retention = std::chrono::hours(24 * config.retention_days)}),
                   asio::bind_cancellation_slot(over.slot(), asio::detached));
    asio::co_spawn(io, apply_retention(sandboxes),
                   asio::bind_cancellation_slot(retention_over.slot(), asio::detached));
    asio::co_spawn(io, telemetry.run(), asio::bind_cancellation_slot(telemetry_over.slot(), asio::detached));
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code& ec, int signal) {
        if (ec) return;
        const bool keep = options.on_stop == OnStop::keep ||
                          (options.on_stop == OnStop::by_signal && signal == SIGTERM);
        log::info("stopping", {{"sandboxes", keep ? "go on" : "end"}});
        server.stop();
        over.emit(asio::cancellation_type::all);
        telemetry_over.emit(asio::cancellation_type::all);
        retention_over.emit(asio::cancellation_type::all);
        webhooks.stop();
        asio::co_spawn(io, shut_down(server, sandboxes, keep ? Sandboxing::keep : Sandboxing::end),
                       [&](const std::exception_ptr&) { io.stop(); });
    });
    const std::string url = fmt::format(
        "http://{}:{}", where.address().is_unspecified() ? "127.0.0.1" : address, bound.port());
    GB_TRY(write_file_atomic(
        server_file(options.node),
        boost::json::serialize(boost::json::object{{"url", url}, {"pid", ::getpid()}}) + "\n"));
    GB_TRY_ASSIGN(auto templates, node->templates());
    std::string names;
    for (const TemplateInfo& info : templates) names += (names.empty() ? "" : ", ") + info.name;
    log::info("serving", {{"version", version()}, {"url", url}});
    fmt::print("glovebox is ready on {}\n", url);
    fmt::print("templates: {}\n", !names.empty()              ? names
                                 : config.prepare_on_demand ? "none yet; the first sandbox of one has it prepared"
                                                            : "none yet; run `" + called_as() + " template prepare`");
    fmt::print("clients:   eval \"$({} env{})\"\n", called_as(),
               options.node.data_dir == NodeOptions().data_dir
                   ? ""
                   : " --data-dir " + options.node.data_dir.string());
    GB_TRY(listen_tls(server, config));
    std::fflush(stdout);
    hold.release();  // from here on a stop decides

    io.run();
    pool.join();  // before what their work refers to goes away
    readers.join();
    webhooks.join();
    std::error_code ignored;
    fs::remove(server_file(options.node), ignored);
    return {};
}

}  // namespace

void add_serve(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand("serve", "Run the server");
    auto options = std::make_shared<ServeOptions>();
    add_node_dirs(*command, options->node);
    command->add_option("--config", options->config_file, "Configuration [/etc/glovebox/config.toml]");
    command->add_option("--listen", options->address, "IP address to listen on [127.0.0.1]");
    command->add_option("--port", options->port, "Port; 0 picks a free one [3000]");
    command
        ->add_option("--on-stop", options->on_stop,
                     "Whether sandboxes go on when the server stops [end at Ctrl-C, keep at SIGTERM]")
        ->transform(CLI::CheckedTransformer(std::map<std::string, OnStop>{{"keep", OnStop::keep}, {"end", OnStop::end}}));
    command
        ->add_option("--pool", options->pool,
                     "Sandboxes of a template kept ready-made at most, unless the configuration says; 0: none  [4]")
        ->check(CLI::Range(0, 1000));
    command
        ->add_option("--egress", options->egress,
                     "What sandboxes may reach: open, or closed but for the lists of the configuration  [as "
                     "configured, else open]")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, EgressMode>{{"open", EgressMode::open}, {"closed", EgressMode::closed}}));
    command->add_option("--ready-slots", options->node.ready_slots, "Network slots kept ready")
        ->capture_default_str();
    command
        ->add_option("--memory-reserve-mib", options->node.memory_reserve_mib,
                     "Memory of the host never given away")
        ->capture_default_str();
    command->add_option("--log-level", options->log_level, "Least level that is logged")
        ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
        ->capture_default_str();
    command->callback([&run, options] {
        run = [options] {
            using enum log::Level;
            log::set_level(options->log_level == "debug"   ? debug
                           : options->log_level == "warn"  ? warn
                           : options->log_level == "error" ? error
                                                           : info);
            raise_open_files();
            Status status = serve(*options);
            return status ? 0 : complain(status.error());
        };
    });
}

}  // namespace gb::cli
