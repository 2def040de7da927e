// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/agent.h"

#include <algorithm>
#include <charconv>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/offload.h"
#include "guest/agent/caller.h"
#include "guest/agent/files_http.h"
#include "guest/agent/filesystem_service.h"
#include "guest/agent/hold.h"
#include "guest/agent/init_request.h"
#include "guest/agent/loopback.h"
#include "guest/agent/machine.h"
#include "guest/agent/metrics.h"
#include "guest/agent/oom_kills.h"
#include "guest/agent/process_service.h"
#include "guest/agent/process_table.h"
#include "guest/agent/reply.h"
#include "guest/agent/rpc.h"
#include "guest/agent/telemetry_log.h"
#include "guest/agent/trust.h"
#include "guest/agent/watch_service.h"
#include "http/server.h"

namespace gb::agent {
namespace {

constexpr std::size_t kMaxInit = std::size_t{4} << 20;
constexpr auto kCpuSample = std::chrono::milliseconds(200);
constexpr std::int64_t kOldCpuSample = 60'000;

// The trust store with a thread of its own: its files may be slow, and identities must not wait for what
// users have asked for.
struct Trust {
    explicit Trust(const std::string& root) : store(root) {}
    TrustStore store;
    asio::thread_pool thread{1};
    // Of the loop. Most sandboxes never have an authority; theirs is looked for once, before they are
    // captured.
    unsigned under_way = 0;
    bool known_empty = false;
};

}  // namespace

struct Agent::Impl {
    Impl(asio::io_context& io, AgentOptions given)
        : context(io),
          options(std::move(given)),
          settings(options.settings),
          pool(1),
          table(context.get_executor(), options.owns_machine),
          processes(table, settings, users, options.limits, telemetry_log),
          filesystem(settings, users, pool, telemetry_log),
          watches(settings, users, pool),
          files(settings, users, pool, telemetry_log),
          children(context, SIGCHLD),
          server(context.get_executor(), [this](Exchange& exchange) { return handle(exchange); }) {
        settings.env.try_emplace("E2B_SANDBOX", "true");
        if (!options.trust_root.empty()) trust.emplace(options.trust_root);
        watch_children();
    }
    ~Impl() {
        server.stop();
        pool.join();
        if (trust) trust->thread.join();
    }

    void watch_children() {
        children.async_wait([this](const boost::system::error_code& ec, int) {
            if (ec) return;
            table.reap();
            watch_children();
        });
    }

    awaitable<void> handle(Exchange& exchange);
    awaitable<bool> route(Exchange& exchange);
    awaitable<bool> route_files(Exchange& exchange);
    awaitable<void> init(Exchange& exchange);
    awaitable<void> freeze_or_thaw(Exchange& exchange, bool freeze);
    awaitable<void> hold_or_release(Exchange& exchange, bool hold);
    [[nodiscard]] std::array<int, 2> groups_of_users() const {
        return {options.limits.user_cgroup_fd, options.limits.pty_cgroup_fd};
    }
    awaitable<Status> set_authority(const Authority& authority);
    awaitable<void> change_trust(Exchange& exchange);
    awaitable<void> metrics(Exchange& exchange);
    awaitable<void> telemetry(Exchange& exchange);
    void take_identity();
    void report_trust(const Error& error);
    [[nodiscard]] Result<std::string> telemetry_json(std::uint64_t after);
    awaitable<Result<double>> cpu_percent();
    [[nodiscard]] bool is_control_plane(const asio::ip::address& peer) const;

    asio::io_context& context;
    AgentOptions options;
    Settings settings;
    UserCache users;
    TelemetryLog telemetry_log;
    OomKills oom_kills;
    CpuTimes cpu_at_identity;
    asio::thread_pool pool;
    std::optional<Trust> trust;
    ProcessTable table;
    ProcessService processes;
    FilesystemService filesystem;
    WatchService watches;
    FilesHttp files;
    asio::signal_set children;
    std::optional<CpuTimes> cpu_before;
    std::int64_t cpu_before_ms = 0;
    http::Server server;  // last: its handlers use all of the others
};

awaitable<void> Agent::Impl::handle(Exchange& exchange) {
    bool answered = false;
    try {
        answered = co_await route(exchange);
    } catch (const std::exception& failure) {
        // Out of memory, most likely. This request is lost, the sandbox is not.
        log::error("request failed", {{"path", exchange.target.path}, {"error", failure.what()}});
        exchange.response.abort();
        co_return;
    }
    if (!answered && !exchange.response.started()) co_await reply_error(exchange, 404, "no such endpoint");
}

awaitable<bool> Agent::Impl::route(Exchange& exchange) {
    const std::string& method = exchange.head.method;
    const std::string& path = exchange.target.path;
    const bool get = method == "GET" || method == "HEAD";
    const bool post = method == "POST";
    if (method == "OPTIONS") {
        co_await reply_preflight(exchange);
        co_return true;
    }
    if (options.owns_machine && (path == "/freeze" || path == "/thaw") && post) {
        co_await freeze_or_thaw(exchange, path == "/freeze");
        co_return true;
    }
    if (options.owns_machine && (path == "/hold" || path == "/release") && post) {
        co_await hold_or_release(exchange, path == "/hold");
        co_return true;
    }
    if (trust && path == "/trust" && post) {
        co_await change_trust(exchange);
        co_return true;
    }
    if (path == "/health" && get) {
        co_await reply_empty(exchange, 204);
        co_return true;
    }
    if (path == "/init" && post) {
        co_await init(exchange);
        co_return true;
    }
    if (path == "/loopback" && get) {
        if (is_control_plane(exchange.peer.address()))
            co_await connect_loopback(exchange);
        else
            co_await reply_error(exchange, 403, "/loopback is for the control plane only");
        co_return true;
    }
    if (path == "/telemetry" && get) {
        co_await telemetry(exchange);
        co_return true;
    }
    if (path == "/files" && (get || post)) co_return co_await route_files(exchange);

    if (const Status allowed = check_token(exchange.head, settings); !allowed) {
        co_await reply_error(exchange, allowed.error());
        co_return true;
    }
    constexpr std::string_view kProcess = "/process.Process/";
    constexpr std::string_view kFilesystem = "/filesystem.Filesystem/";
    if (path.starts_with(kProcess) && post) {
        if (!co_await processes.serve(exchange, std::string_view(path).substr(kProcess.size())))
            co_await refuse_method(exchange);
        co_return true;
    }
    if (path.starts_with(kFilesystem) && post) {
        const auto name = std::string_view(path).substr(kFilesystem.size());
        if (!co_await filesystem.serve(exchange, name) && !co_await watches.serve(exchange, name))
            co_await refuse_method(exchange);
        co_return true;
    }
    if (path == "/files/compose" && post) {
        co_await files.compose(exchange);
    } else if (path == "/metrics" && get) {
        co_await metrics(exchange);
    } else if (path == "/envs" && get) {
        co_await reply_json(exchange, 200, environment_json(global_environment(settings)));
    } else {
        co_return false;
    }
    co_return true;
}

awaitable<bool> Agent::Impl::route_files(Exchange& exchange) {
    const bool upload = exchange.head.method == "POST";
    const FileOperation operation = upload ? FileOperation::write : FileOperation::read;
    const Status allowed = check_file_access(exchange, operation, settings, now_ms() / 1000);
    if (!allowed)
        co_await reply_error(exchange, allowed.error());
    else if (upload)
        co_await files.upload(exchange);
    else
        co_await files.download(exchange);
    co_return true;
}

bool Agent::Impl::is_control_plane(const asio::ip::address& peer) const {
    return (options.control_peer && peer == *options.control_peer) ||
           (options.allow_local_init && peer.is_loopback());
}

awaitable<void> Agent::Impl::init(Exchange& exchange) {
    if (!is_control_plane(exchange.peer.address())) {
        co_await reply_error(exchange, 403, "/init is for the control plane only");
        co_return;
    }
    const auto body = co_await exchange.body.read_all(kMaxInit);
    const Result<InitRequest> request = body ? parse_init_request(*body) : std::unexpected(body.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    // The machine first, and the clock first of all: its value is ageing.
    if (options.owns_machine) prepare_machine(*request);
    // Before anything of the new identity: no program may start with it and not trust its authority.
    const Status trusted = request->authority ? co_await set_authority(*request->authority) : Status();
    apply_init_request(*request, settings);
    take_identity();
    // A guest whose files do not allow it is still a sandbox.
    if (!trusted) report_trust(trusted.error());
    if (!options.state_dir.empty()) {
        if (const Status written = write_state_files(options.state_dir, settings); !written) {
            log::error("state files", {{"error", written.error().message}});
            co_await reply_error(exchange, 500, written.error().message);
            co_return;
        }
    }
    // What ran when the machine was saved goes on, and finds all of this.
    if (options.owns_machine)
        if (Status released = release_processes(groups_of_users()); !released)
            log::error("processes are held", {{"error", released.error().message}});
    co_await reply_empty(exchange, 204);
    // A client waits for the answer while a disk that was just restored is cold; no other request gets in
    // between.
    if (options.owns_machine && request->hostname)
        if (const Status status = add_to_hosts(*request->hostname); !status)
            log::warn("host name not in /etc/hosts", {{"error", status.error().message}});
}

awaitable<void> Agent::Impl::freeze_or_thaw(Exchange& exchange, bool freeze) {
    if (!is_control_plane(exchange.peer.address())) {
        co_await reply_error(exchange, 403, "this is for the control plane only");
        co_return;
    }
    const Status done = freeze ? co_await offload(pool, [] { return freeze_disk(); }) : thaw_disk();
    if (done)
        co_await reply_empty(exchange, 204);
    else
        co_await reply_error(exchange, done.error());
}

awaitable<void> Agent::Impl::hold_or_release(Exchange& exchange, bool hold) {
    if (!is_control_plane(exchange.peer.address())) {
        co_await reply_error(exchange, 403, "this is for the control plane only");
        co_return;
    }
    const auto groups = groups_of_users();
    const Status done =
        hold ? co_await offload(pool, [&] { return hold_processes(groups); }) : release_processes(groups);
    if (done)
        co_await reply_empty(exchange, 204);
    else
        co_await reply_error(exchange, done.error());
}

// Programs that are started from now on find it, or find nothing of an earlier one.
awaitable<Status> Agent::Impl::set_authority(const Authority& authority) {
    if (!trust) co_return Status();
    const bool none = authority.pem.empty();
    if (none && trust->known_empty) co_return Status();
    trust->known_empty = false;
    ++trust->under_way;
    const TrustStore::Outcome outcome =
        co_await offload(trust->thread, [&] { return trust->store.apply(authority); });
    --trust->under_way;
    trust->known_empty = none && outcome.status && trust->under_way == 0;
    settings.trusts_authority = outcome.trusted;
    co_return outcome.status;
}

void Agent::Impl::report_trust(const Error& error) {
    log::error("certificate authority", {{"error", error.message}});
    telemetry_log.add(TelemetryLog::Level::error, "agent", "the certificate authority could not be set",
                      {{"error", error.message}});
}

awaitable<void> Agent::Impl::change_trust(Exchange& exchange) {
    if (!is_control_plane(exchange.peer.address())) {
        co_await reply_error(exchange, 403, "this is for the control plane only");
        co_return;
    }
    const auto body = co_await exchange.body.read_all(kMaxInit);
    const Result<Authority> authority = body ? parse_trust_request(*body) : std::unexpected(body.error());
    if (!authority) {
        co_await reply_error(exchange, authority.error());
        co_return;
    }
    Status done = co_await set_authority(*authority);
    if (!done) report_trust(done.error());
    // In any case: what could be done has been.
    if (!options.state_dir.empty())
        if (Status written = write_environment_file(options.state_dir, settings); !written && done)
            done = written;
    if (done)
        co_await reply_empty(exchange, 204);
    else
        co_await reply_error(exchange, done.error());
}

awaitable<Result<double>> Agent::Impl::cpu_percent() {
    // Since the last request, if that is recent; a first one waits for a moment to have something to compare.
    if (!cpu_before || monotonic_ms() - cpu_before_ms > kOldCpuSample) {
        GB_CO_TRY_ASSIGN(cpu_before, read_cpu_times());
        asio::steady_timer pause(context, kCpuSample);
        co_await pause.async_wait(kErrorTuple);
    }
    GB_CO_TRY_ASSIGN(const CpuTimes now, read_cpu_times());
    const double used = cpu_used_percent(*cpu_before, now);
    cpu_before = now;
    cpu_before_ms = monotonic_ms();
    co_return used;
}

awaitable<void> Agent::Impl::metrics(Exchange& exchange) {
    const Result<double> cpu = co_await cpu_percent();
    const Result<std::string> body = cpu ? metrics_json(*cpu) : std::unexpected(cpu.error());
    if (body)
        co_await reply_json(exchange, 200, *body);
    else
        co_await reply_error(exchange, body.error());
}

// After the clock is set: nothing may be stamped with the time of the snapshot.
void Agent::Impl::take_identity() {
    telemetry_log.restart();
    oom_kills.restart();
    cpu_at_identity = read_cpu_times().value_or(CpuTimes{});
    telemetry_log.add(TelemetryLog::Level::info, "agent", "identity taken",
                      {{"generation", std::to_string(settings.generation)}});
}

Result<std::string> Agent::Impl::telemetry_json(std::uint64_t after) {
    if (const std::uint64_t killed = oom_kills.take(); killed > 0)
        telemetry_log.add(
            TelemetryLog::Level::error, "process",
            fmt::format("out of memory: the kernel killed {} process{}", killed, killed == 1 ? "" : "es"),
            {{"killed", std::to_string(killed)}});
    GB_TRY_ASSIGN(const CpuTimes now, read_cpu_times());
    GB_TRY_ASSIGN(const std::string use, metrics_json(cpu_used_percent(cpu_at_identity, now)));
    const TelemetryLog::Page page = telemetry_log.after(after);
    // Counted from the identity on, so that the first reading means something without a second one.
    return fmt::format(
        R"({{"metrics":{},"cpu_busy_ticks":{},"cpu_total_ticks":{},"next":{},"dropped":{},"more":{},"entries":{}}})",
        use, now.busy - std::min(now.busy, cpu_at_identity.busy),
        now.total - std::min(now.total, cpu_at_identity.total), page.next, page.dropped, page.more,
        page.entries);
}

awaitable<void> Agent::Impl::telemetry(Exchange& exchange) {
    if (!is_control_plane(exchange.peer.address())) {
        co_await reply_error(exchange, 403, "/telemetry is for the control plane only");
        co_return;
    }
    const std::string text = exchange.target.get("after");
    std::uint64_t after = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), after);
    if (!text.empty() && (ec != std::errc{} || end != text.data() + text.size())) {
        co_await reply_error(exchange, 400, "after: must be a number");
        co_return;
    }
    const Result<std::string> body = telemetry_json(after);
    if (body)
        co_await reply_json(exchange, 200, *body);
    else
        co_await reply_error(exchange, body.error());
}

Agent::Agent(asio::io_context& context, AgentOptions options)
    : impl_(std::make_unique<Impl>(context, std::move(options))) {}

Agent::~Agent() = default;

Result<asio::ip::tcp::endpoint> Agent::listen(const asio::ip::tcp::endpoint& where) {
    return impl_->server.listen(where);
}

}  // namespace gb::agent
