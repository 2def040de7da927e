#include "node/local_node.h"

#include <thread>
#include <unordered_set>

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "base/offload.h"
#include "http/client.h"
#include "node/agent_client.h"
#include "node/telemetry_message.h"

namespace gb {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::awaitable;
using asio::ip::tcp;

// A sandbox with the event loop's eyes on it. The descriptors are copies: closing them ends the watching and
// nothing else.
struct LocalNode::Watched {
    explicit Watched(const asio::any_io_executor& executor) : exit(executor), decisions(executor) {}
    std::shared_ptr<SandboxMachine> machine;
    asio::posix::stream_descriptor exit;
    asio::posix::stream_descriptor decisions;
    // Connections into the guest that are still being made; nobody answers them once it has ended.
    std::unordered_set<std::shared_ptr<tcp::socket>> connecting;
    std::unordered_set<std::shared_ptr<http::ClientConnection>> asking;  // the agent, on our own behalf

    void close() {
        boost::system::error_code ignored;
        for (const auto& socket : connecting) socket->cancel(ignored);
        for (const auto& connection : asking) connection->close();
        exit.close(ignored);
        decisions.close(ignored);
    }
};

namespace {

constexpr auto kConnectLimit = std::chrono::seconds(10);
constexpr auto kTelemetryLimit = std::chrono::seconds(2);

Status assign_copy(asio::posix::stream_descriptor& to, int fd) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return fail_errno("watch a machine");
    boost::system::error_code ec;
    to.assign(copy.get(), ec);
    if (ec) return fail(ErrorCode::internal, "watch a machine: " + ec.message());
    (void)copy.release();
    return {};
}

}  // namespace

LocalNode::LocalNode(asio::any_io_executor executor, asio::thread_pool& pool, NodeOptions options)
    : executor_(std::move(executor)),
      pool_(pool),
      options_(std::move(options)),
      templates_(options_.templates()) {}

Result<std::unique_ptr<LocalNode>> LocalNode::open(asio::any_io_executor executor, asio::thread_pool& pool,
                                                   NodeOptions options) {
    std::unique_ptr<LocalNode> node(new LocalNode(std::move(executor), pool, std::move(options)));
    const NodeOptions& o = node->options_;
    GB_TRY_ASSIGN(node->lock_, lock_folder(o.data_dir, Busy::refuse));
    GB_TRY_ASSIGN(std::string instance, instance_of(o.data_dir));
    GB_TRY_ASSIGN(node->machinery_, open_machinery(o.data_dir, instance));
    // The machines are dead by now; their files go too.
    GB_TRY(remove_tree(o.data_dir / "sandboxes"));
    GB_TRY(make_dirs(o.data_dir / "sandboxes", 0711));
    net::SlotPoolOptions pool_options;
    pool_options.target = o.ready_slots;
    node->slots_ = std::make_unique<net::SlotPool>(*node->machinery_.network, pool_options);
    node->watch_host();
    return node;
}

LocalNode::~LocalNode() {
    if (host_watch_) host_watch_->close();
    for (auto& [id, watched] : sandboxes_) watched->close();
    sandboxes_.clear();
    slots_.reset();
}

Result<std::vector<TemplateInfo>> LocalNode::templates() {
    GB_TRY_ASSIGN(auto stored, templates_.list());
    std::vector<TemplateInfo> out;
    for (const StoredTemplate& build : stored) out.push_back(build.manifest.info);
    return out;
}

std::shared_ptr<LocalNode::Watched> LocalNode::find_watched(const std::string& id) const {
    std::lock_guard lock(mutex_);
    auto found = sandboxes_.find(id);
    return found == sandboxes_.end() ? nullptr : found->second;
}

std::shared_ptr<SandboxMachine> LocalNode::find(const std::string& id) const {
    const std::shared_ptr<Watched> found = find_watched(id);
    return found ? found->machine : nullptr;
}

Result<std::shared_ptr<SandboxMachine>> LocalNode::make(const SandboxSpec& spec) {
    GB_TRY_ASSIGN(StoredTemplate from, templates_.find(spec.template_id));
    if (from.manifest.vmm_id != machinery_.engine->vmm_root().id)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format(
                "template '{0}' was made with another QEMU ({1}); run `glovebox template prepare {0}`",
                from.manifest.info.name, from.manifest.vmm_version));
    net::NetworkRequest request{spec.network.allow_internet_access, spec.network.allow_out,
                                spec.network.deny_out};
    GB_TRY_ASSIGN(net::EgressPolicy policy, net::parse_policy(request));
    GB_TRY_ASSIGN(const std::uint64_t available, available_memory_mib());
    const auto needed = static_cast<std::uint64_t>(from.manifest.info.memory_mib);
    if (available < needed + options_.memory_reserve_mib)
        return fail(
            ErrorCode::unavailable,
            fmt::format(
                "no free memory: the sandbox may need {} MiB and {} MiB stay reserved for the host, but "
                "only {} MiB are available. Kill a sandbox or use a larger machine",
                needed, options_.memory_reserve_mib, available));
    SandboxMachine::Parts parts{machinery_, *slots_, options_.data_dir / "sandboxes"};
    return SandboxMachine::start(parts, from, spec, std::move(policy));
}

awaitable<Status> LocalNode::create(SandboxSpec spec) {
    GB_CO_TRY_ASSIGN(std::shared_ptr<SandboxMachine> machine,
                     co_await offload(pool_, [&] { return make(spec); }));
    auto watched = std::make_shared<Watched>(executor_);
    watched->machine = std::move(machine);
    Status watching = assign_copy(watched->exit, watched->machine->pidfd());
    if (watching) watching = assign_copy(watched->decisions, watched->machine->decision_fd());
    if (!watching) {  // a machine that nobody watches must not run
        watched->close();
        co_await offload(pool_, [m = watched->machine] { return m->end(); });
        co_return std::unexpected(watching.error());
    }
    {
        std::lock_guard lock(mutex_);
        sandboxes_[spec.id] = watched;
    }
    watch(watched);
    co_return Status{};
}

void LocalNode::watch(const std::shared_ptr<Watched>& watched) {
    std::weak_ptr<Watched> weak = watched;
    watched->exit.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, weak](const boost::system::error_code& ec) {
                                 auto alive = weak.lock();
                                 if (ec || !alive) return;
                                 if (on_exit_) on_exit_(alive->machine->id(), alive->machine->last_words());
                             });
    // Decisions are read in strides of 20 ms: a guest that floods costs the host a bounded share of its loop.
    auto timer = std::make_shared<asio::steady_timer>(executor_);
    auto wait = std::make_shared<std::function<void()>>();
    *wait = [weak, timer, again = std::weak_ptr<std::function<void()>>(wait)] {
        auto alive = weak.lock();
        auto next = again.lock();
        if (!alive || !next) return;
        alive->decisions.async_wait(asio::posix::stream_descriptor::wait_read,
                                    [weak, timer, next](const boost::system::error_code& ec) {
                                        auto still = weak.lock();
                                        if (ec || !still) return;
                                        still->machine->record_decisions();
                                        timer->expires_after(std::chrono::milliseconds(20));
                                        timer->async_wait([next](const boost::system::error_code& timer_ec) {
                                            if (!timer_ec) (*next)();
                                        });
                                    });
    };
    (*wait)();
}

void LocalNode::watch_host() {
    if (!host_watch_) {
        host_watch_ = std::make_shared<Watched>(executor_);
        if (Status status = assign_copy(host_watch_->decisions, machinery_.network->decision_fd()); !status)
            log::error("decisions of the host's rules are not recorded", {{"error", status.error().message}});
    }
    std::weak_ptr<Watched> weak = host_watch_;
    host_watch_->decisions.async_wait(
        asio::posix::stream_descriptor::wait_read, [this, weak](const boost::system::error_code& ec) {
            if (ec || weak.expired()) return;
            for (const net::HostDecision& item : machinery_.network->read_decisions()) {
                std::lock_guard lock(mutex_);
                for (const auto& [id, watched] : sandboxes_)
                    if (watched->machine->slot_number() == item.slot) watched->machine->record(item.decision);
            }
            watch_host();
        });
}

awaitable<Status> LocalNode::pause(std::string, PauseMode) {
    co_return fail(ErrorCode::unimplemented, "this server cannot pause sandboxes yet");
}

awaitable<Status> LocalNode::resume(SandboxSpec) {
    co_return fail(ErrorCode::unimplemented, "this server cannot resume sandboxes yet");
}

Result<std::vector<HeldSandbox>> LocalNode::held() {
    return std::vector<HeldSandbox>{};
}

void LocalNode::leave_running() {}

awaitable<Status> LocalNode::destroy(std::string id) {
    std::shared_ptr<Watched> watched;
    {
        std::lock_guard lock(mutex_);
        auto found = sandboxes_.find(id);
        if (found == sandboxes_.end()) co_return Status{};
        watched = std::move(found->second);
        sandboxes_.erase(found);
    }
    watched->close();
    co_return co_await offload(pool_, [machine = watched->machine] { return machine->end(); });
}

awaitable<Result<tcp::socket>> LocalNode::connect(std::string id, std::uint16_t port) {
    co_return co_await dial(std::move(id), port, kConnectLimit);
}

awaitable<Result<tcp::socket>> LocalNode::dial(std::string id, std::uint16_t port,
                                               std::chrono::milliseconds limit) {
    // Only a weak reference while waiting: a machine must not outlive the node.
    std::weak_ptr<Watched> sandbox;
    UniqueFd fd;
    {
        std::shared_ptr<Watched> found = find_watched(id);
        if (!found) co_return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
        GB_CO_TRY_ASSIGN(fd, found->machine->socket());
        sandbox = found;
    }
    // Shared with the timer's handler, which may be queued already when this frame ends.
    auto socket = std::make_shared<tcp::socket>(executor_);
    boost::system::error_code ec;
    socket->assign(tcp::v4(), fd.release(), ec);
    if (ec) co_return fail(ErrorCode::internal, "socket: " + ec.message());
    asio::steady_timer timer(executor_, limit);
    timer.async_wait([socket](const boost::system::error_code& timer_ec) {
        boost::system::error_code ignored;
        if (!timer_ec) socket->cancel(ignored);
    });
    if (auto found = sandbox.lock()) found->connecting.insert(socket);
    auto [connect_ec] = co_await socket->async_connect({asio::ip::make_address(kGuestAddress), port},
                                                       asio::as_tuple(asio::use_awaitable));
    timer.cancel();
    if (auto found = sandbox.lock()) found->connecting.erase(socket);
    if (connect_ec)
        co_return fail(ErrorCode::unavailable, fmt::format("port {}: {}", port, connect_ec.message()));
    co_return std::move(*socket);
}

awaitable<Result<Telemetry>> LocalNode::telemetry(std::string id, std::uint64_t after) {
    const auto deadline = std::chrono::steady_clock::now() + kTelemetryLimit;
    GB_CO_TRY_ASSIGN(tcp::socket socket, co_await dial(id, kAgentPort, kTelemetryLimit));
    // Shared with the timer's handler and with the end of the sandbox, which both may cut it.
    auto connection = std::make_shared<http::ClientConnection>(std::move(socket));
    const std::weak_ptr<Watched> sandbox = find_watched(id);
    if (auto found = sandbox.lock())
        found->asking.insert(connection);
    else
        co_return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
    asio::steady_timer timer(executor_, deadline);
    timer.async_wait([connection](const boost::system::error_code& ec) {
        if (!ec) connection->close();
    });
    http::RequestHead request{"GET", fmt::format("/telemetry?after={}", after), {{"Host", kGuestAddress}}};
    auto answer = co_await connection->request(std::move(request), {}, kMaxTelemetryBytes);
    timer.cancel();
    connection->close();
    if (auto found = sandbox.lock()) found->asking.erase(connection);
    if (!answer) {
        if (std::chrono::steady_clock::now() < deadline) co_return std::unexpected(answer.error());
        co_return fail(ErrorCode::deadline_exceeded, "the guest did not tell its telemetry in time");
    }
    if (answer->head.status != 200)
        co_return fail(ErrorCode::internal,
                       fmt::format("the guest answered {} instead of telemetry", answer->head.status));
    co_return parse_telemetry(answer->body, after);
}

Result<NodeInfo> LocalNode::info() {
    NodeInfo out;
    out.id = machinery_.instance;
    out.vmm = "QEMU " + machinery_.engine->vmm_root().version.text();
    out.cpu_count = static_cast<int>(std::thread::hardware_concurrency());
    GB_TRY_ASSIGN(auto stored, templates_.list());
    if (!stored.empty())
        out.accelerator = std::string(engine::accelerator_name(stored.front().manifest.accelerator));
    GB_TRY_ASSIGN(out.memory_available_mib, available_memory_mib());
    struct sysinfo memory {};
    if (::sysinfo(&memory) == 0)
        out.memory_mib = static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit >> 20;
    out.memory_reserve_mib = options_.memory_reserve_mib;
    std::error_code ec;
    const auto space = std::filesystem::space(options_.data_dir, ec);
    if (!ec) out.disk_available_mib = space.available >> 20;
    return out;
}

Result<Isolation> LocalNode::isolation(const std::string& id) {
    auto machine = find(id);
    if (!machine) return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
    const Manifest& m = machine->manifest();
    utsname host{};
    ::uname(&host);
    return Isolation{"microvm",
                     std::string(engine::accelerator_name(m.accelerator)),
                     m.accelerator_reason,
                     "QEMU " + m.vmm_version,
                     m.guest_kernel,
                     host.release};
}

Result<SandboxUsage> LocalNode::usage(const std::string& id) {
    auto machine = find(id);
    if (!machine) return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
    return machine->usage();
}

Result<std::vector<std::string>> LocalNode::decisions(const std::string& id, std::size_t limit) {
    auto machine = find(id);
    if (!machine) return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
    return machine->decisions(limit);
}

}  // namespace gb
