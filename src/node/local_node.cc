// SPDX-License-Identifier: Apache-2.0
#include "node/local_node.h"

#include <algorithm>
#include <thread>
#include <unordered_set>

#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "base/offload.h"
#include "base/open_files.h"
#include "http/client.h"
#include "image/definition.h"
#include "node/agent_client.h"
#include "node/decision_archive.h"
#include "node/effective_network.h"
#include "node/folder_size.h"
#include "node/loopback.h"
#include "node/telemetry_message.h"

namespace gb {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::awaitable;
using asio::ip::tcp;

namespace {

awaitable<boost::system::error_code> connect_to(std::shared_ptr<tcp::socket> socket, tcp::endpoint to) {
    auto [ec] = co_await socket->async_connect(to, kErrorTuple);
    co_return ec;
}

}  // namespace

// A sandbox with the event loop's eyes on it. The descriptors are copies: closing them ends the watching and
// nothing else.
struct LocalNode::Watched {
    explicit Watched(const asio::any_io_executor& executor)
        : exit(executor), decisions(executor), flows(executor) {}
    std::shared_ptr<SandboxMachine> machine;
    asio::posix::stream_descriptor exit;
    asio::posix::stream_descriptor decisions;
    asio::posix::stream_descriptor flows;  // that have ended
    bool pausing = false;                  // its end is expected
    // Connections into the guest that are still being made; nobody answers them once it has ended.
    std::unordered_set<std::shared_ptr<tcp::socket>> connecting;
    std::unordered_set<std::shared_ptr<http::ClientConnection>> asking;  // the agent, on our own behalf

    void close() {
        boost::system::error_code ignored;
        for (const auto& socket : connecting) socket->cancel(ignored);
        for (const auto& connection : asking) connection->close();
        exit.close(ignored);
        decisions.close(ignored);
        flows.close(ignored);
    }
};

namespace {

constexpr auto kConnectLimit = std::chrono::seconds(30);  // a guest that is short of a processor answers late
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

// The folders of sandboxes that were running and cannot be taken over, or half paused, or half resumed; they are none
// from here on. A paused one stays, damaged or not: what can still be read of it is its owner's.
Result<std::vector<fs::path>> find_abandoned(const fs::path& sandboxes, const std::vector<Survivor>& survivors) {
    std::error_code ec;
    std::vector<fs::path> abandoned;
    for (const fs::directory_entry& entry : fs::directory_iterator(sandboxes, ec)) {
        const std::string id = entry.path().filename();
        if (std::ranges::any_of(survivors, [&](const Survivor& s) { return s.record.id == id; })) continue;
        GB_TRY(remove_record(SandboxFolder(entry.path()).machine()));  // of a machine that is gone
        auto paused = read_paused(SandboxFolder(entry.path()));
        if (paused) continue;
        const ErrorCode why = paused.error().code;
        if (why == ErrorCode::not_found || why == ErrorCode::aborted) {
            abandoned.push_back(entry.path());
        } else {
            log::warn("a paused sandbox is damaged",
                      {{"sandbox", entry.path().filename().string()}, {"error", paused.error().message}});
        }
    }
    if (ec) return fail_errno(ec.value(), "read " + sandboxes.string());
    for (const fs::path& folder : abandoned) GB_TRY(remove_manifest(SandboxFolder(folder)));
    return abandoned;
}

Status remove_abandoned(const std::vector<fs::path>& abandoned, const fs::path& archive) {
    for (const fs::path& folder : abandoned) {
        if (Status kept = keep_decisions(archive, folder.filename(), SandboxFolder(folder)); !kept)
            log::warn("decisions of a sandbox are lost",
                      {{"sandbox", folder.filename().string()}, {"error", kept.error().message}});
        GB_TRY(remove_tree(folder));
    }
    return {};
}

WarmTemplate warm_template_of(const StoredTemplate& build) {
    return {build.manifest.info.name, build.manifest.info.build_id,
            static_cast<std::uint64_t>(build.manifest.info.memory_mib)};
}

// A sandbox of this machine as the pool keeps it.
class WaitingSandbox final : public WarmMachine {
  public:
    explicit WaitingSandbox(std::shared_ptr<SandboxMachine> machine) : machine_(std::move(machine)) {}
    [[nodiscard]] bool alive() const override { return machine_->alive(); }
    Result<std::shared_ptr<SandboxMachine>> hand_over(const SandboxSpec& spec,
                                                      net::EgressPolicy policy) override {
        const std::shared_ptr<SandboxMachine> machine = std::move(machine_);
        Status done = machine->hand_over(spec, std::move(policy));
        if (done) return machine;
        (void)machine->end();  // now, and not with its last owner: its folder has the sandbox's name
        return std::unexpected(done.error());
    }

  private:
    std::shared_ptr<SandboxMachine> machine_;
};

}  // namespace

LocalNode::LocalNode(asio::any_io_executor executor, asio::thread_pool& pool, NodeOptions options)
    : executor_(std::move(executor)),
      pool_(pool),
      options_(std::move(options)),
      sweep_timer_(executor_),
      templates_(options_.templates()),
      on_demand_(options_.templates(), options_.prepare_program.empty()
                                           ? OnDemand::Prepare()
                                           : prepare_by(options_.prepare_program, options_)),
      snapshots_(options_.data_dir / "snapshots", templates_),
      took_over_(executor_, asio::steady_timer::time_point::max()) {}

Result<std::unique_ptr<LocalNode>> LocalNode::open(asio::any_io_executor executor, asio::thread_pool& pool,
                                                   NodeOptions options) {
    std::unique_ptr<LocalNode> node(new LocalNode(std::move(executor), pool, std::move(options)));
    if (Status status = node->start(); !status) {
        node->leave_running();  // what is wrong with this server is not its sandboxes' fault
        return std::unexpected(status.error());
    }
    return node;
}

Status LocalNode::start_egress() {
    egress::EgressOptions egress;
    egress.ceiling = machinery_.network->ceiling();
    egress.trusted = options_.network.trusted;
    egress.descriptors = open_files_limit();
    if (options_.network.resolvers.empty()) {
        // Without any, sandboxes have no names; doctor says so.
        egress.resolvers = egress::upstreams_of_resolv_conf(read_file("/etc/resolv.conf").value_or(""));
    }
    for (const std::string& text : options_.network.resolvers) {
        auto where = egress::parse_endpoint(text);
        if (!where)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("resolver '{}': {}", text, where.error().message));
        egress.resolvers.push_back(*where);
    }
    options_.network.resolvers.clear();
    for (const egress::DnsEndpoint& server : egress.resolvers)
        options_.network.resolvers.push_back(to_string(server));
    GB_TRY_ASSIGN(egress_, egress::EgressService::start(std::move(egress)));
    return {};
}

Status LocalNode::start() {
    const fs::path sandboxes = options_.data_dir / "sandboxes";
    GB_TRY_ASSIGN(lock_, lock_folder(options_.data_dir, Busy::refuse));
    GB_TRY_ASSIGN(std::string instance, instance_of(options_.data_dir));
    GB_TRY(make_dirs(sandboxes, 0711));
    GB_TRY(snapshots_.open());
    GB_TRY_ASSIGN(machinery_, open_machinery(options_.data_dir, instance, options_.network.ceiling,
                                             [&](engine::Engine& engine, std::uint16_t tag) {
                                                 return find_survivors(engine, templates_, sandboxes, tag);
                                             }));
    GB_TRY_ASSIGN(std::vector<fs::path> abandoned, find_abandoned(sandboxes, machinery_.survivors));
    begin_clearing(std::move(abandoned));
    sweep_archive();
    net::SlotPoolOptions pool_options;
    pool_options.target = options_.ready_slots;
    pool_options.slot = options_.network.slot;
    slots_ = std::make_unique<net::SlotPool>(*machinery_.network, pool_options);
    GB_TRY(start_egress());
    watch_host();
    for (const Survivor& survivor : machinery_.survivors) to_take_over_.insert(survivor.record.id);
    // Not before the loop runs: by then who is told of an end, and who has the secrets, is known.
    asio::post(executor_, [this, here = std::weak_ptr<bool>(here_)] {
        if (!here.expired()) begin_take_over();
    });
    open_warm_pool();
    disk_retry_ = std::make_unique<DiskRetry>(executor_, pool_, [this] {
        std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<SandboxMachine>> machines;
        for (const auto& [id, watched] : sandboxes_) machines.push_back(watched->machine);
        return machines;
    });
    return {};
}

void LocalNode::begin_clearing(std::vector<fs::path> abandoned) {
    std::packaged_task<Status()> task([this, abandoned = std::move(abandoned)]() -> Status {
        Status ended = machinery_.end_others();
        if (ended) ended = remove_abandoned(abandoned, archive());
        if (!ended) log::error("what the previous run left is not gone", {{"error", ended.error().message}});
        return ended;
    });
    cleared_ = task.get_future().share();
    clearing_ = std::jthread(std::move(task));
}

void LocalNode::begin_take_over() {
    constexpr std::size_t kAtOnce = 8;
    std::lock_guard lock(mutex_);
    if (leaving_) return;
    const std::size_t count = std::min(kAtOnce, machinery_.survivors.size());
    for (std::size_t i = 0; i < count; ++i) takers_.emplace_back([this] { take_over_some(); });
}

void LocalNode::take_over_some() {
    for (;;) {
        std::unique_lock lock(mutex_);
        if (leaving_ || machinery_.survivors.empty()) return;
        const Survivor survivor = std::move(machinery_.survivors.back());
        machinery_.survivors.pop_back();
        lock.unlock();
        const std::string& id = survivor.record.id;
        TakenOver machine = SandboxMachine::adopt(parts(), survivor);
        lock.lock();
        taken_over_.emplace(id, std::move(machine));
        asio::post(executor_, [this, id, here = std::weak_ptr<bool>(here_)] {
            if (!here.expired()) end_take_over(id);
        });
    }
}

void LocalNode::end_take_over(const std::string& id) {
    std::unique_lock lock(mutex_);
    auto node = taken_over_.extract(id);
    lock.unlock();
    if (node.empty()) return;
    Status done = node.mapped() ? take_in(*node.mapped()) : std::unexpected(node.mapped().error());
    lock.lock();
    to_take_over_.erase(id);
    const bool last = to_take_over_.empty();
    lock.unlock();
    if (last) machinery_.network->release_kept();
    if (done) {
        log::info("a sandbox of the previous run goes on", {{"sandbox", id}});
    } else {
        log::warn("a machine of the previous run cannot be taken over and ends",
                  {{"sandbox", id}, {"error", done.error().message}});
        if (on_exit_) on_exit_(id, "it could not be taken over after a restart of the server");
    }
    took_over_.cancel();
}

bool LocalNode::being_taken_over(const std::string& id) const {
    std::lock_guard lock(mutex_);
    return id.empty() ? !to_take_over_.empty() : to_take_over_.contains(id);
}

awaitable<void> LocalNode::taken_over(std::string id) {
    while (being_taken_over(id)) co_await took_over_.async_wait(kErrorTuple);
}

LocalNode::~LocalNode() {
    here_.reset();
    warm_.reset();
    begin_take_over();  // of what nobody has begun with: it ends with the others
    takers_.clear();
    taken_over_.clear();
    if (clearing_.joinable()) clearing_.join();
    disk_retry_.reset();
    if (host_watch_) host_watch_->close();
    for (auto& [id, watched] : sandboxes_) watched->close();
    sandboxes_.clear();
    egress_.reset();
    slots_.reset();
}

Result<std::vector<TemplateInfo>> LocalNode::templates() {
    GB_TRY_ASSIGN(auto stored, templates_.list());
    std::vector<TemplateInfo> out;
    for (const StoredTemplate& build : stored) out.push_back(build.manifest.info);
    return out;
}

Error LocalNode::absent_template(const std::string& name) {
    if (image::load_definition(options_.images_dir, name)) return on_demand_.ask(name);
    return {ErrorCode::not_found, fmt::format("template '{}' not found", name)};
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

Status LocalNode::check_vmm(const Manifest& manifest) const {
    if (manifest.vmm_id == machinery_.engine->vmm_root().id) return {};
    if (manifest.saved)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("the snapshot was taken with another QEMU ({}) and can only be started with that",
                        manifest.vmm_version));
    return fail(
        ErrorCode::failed_precondition,
        fmt::format("template '{0}' was made with another QEMU ({1}); run `glovebox template prepare {0}`",
                    manifest.info.name, manifest.vmm_version));
}

Status LocalNode::check_memory(const Manifest& manifest) const {
    GB_TRY_ASSIGN(const std::uint64_t available, available_memory_mib());
    const auto needed = static_cast<std::uint64_t>(manifest.info.memory_mib);
    if (available >= needed + options_.memory_reserve_mib) return {};
    return fail(
        ErrorCode::unavailable,
        fmt::format("no free memory: the sandbox may need {} MiB and {} MiB stay reserved for the host, but "
                    "only {} MiB are available. Kill a sandbox or use a larger machine",
                    needed, options_.memory_reserve_mib, available));
}

Status LocalNode::make_room(const Manifest& manifest) {
    for (;;) {
        Status room = check_memory(manifest);
        if (room || room.error().code != ErrorCode::unavailable || !warm_->give_up()) return room;
    }
}

Result<std::shared_ptr<SandboxMachine>> LocalNode::take_or_start(const StoredTemplate& from,
                                                                 const SandboxSpec& spec,
                                                                 const net::EgressPolicy& policy) {
    const WarmTemplate kind = warm_template_of(from);
    const WarmPool::Creating creating(*warm_, kind.memory_mib);
    // No copy of a snapshot waits.
    std::unique_ptr<WarmMachine> waiting = spec.snapshot_build.empty() ? warm_->take(kind) : nullptr;
    Status room = make_room(from.manifest);
    if (!room && waiting) {
        waiting.reset();  // the last one that could be given up
        room = make_room(from.manifest);
    }
    if (!room) return std::unexpected(room.error());
    if (waiting) {
        auto machine = waiting->hand_over(spec, policy);
        if (machine) {
            ++creates_from_pool_;
            return machine;
        }
        log::warn("a warm sandbox could not be handed over and a new one is started",
                  {{"sandbox", spec.id}, {"error", machine.error().message}});
    }
    auto machine = SandboxMachine::start(parts(), from, spec, policy);
    if (machine) ++creates_from_restore_;
    return machine;
}

void LocalNode::open_warm_pool() {
    WarmPoolParts pool;
    pool.templates = [this]() -> Result<std::vector<WarmTemplate>> {
        GB_TRY_ASSIGN(const auto stored, templates_.list());
        std::vector<WarmTemplate> out;
        for (const StoredTemplate& build : stored)
            if (check_vmm(build.manifest)) out.push_back(warm_template_of(build));
        return out;
    };
    pool.make = [this](const WarmTemplate& of,
                       const std::stop_token& over) -> Result<std::unique_ptr<WarmMachine>> {
        GB_TRY(cleared());
        GB_TRY_ASSIGN(const StoredTemplate from, templates_.find_build(of.build_id));
        GB_TRY_ASSIGN(auto machine, SandboxMachine::warm(parts(), from, over));
        return std::make_unique<WaitingSandbox>(std::move(machine));
    };
    pool.available_mib = [this]() -> Result<std::uint64_t> {
        GB_TRY_ASSIGN(const std::uint64_t available, available_memory_mib());
        return available - std::min(available, options_.memory_reserve_mib);
    };
    warm_ = std::make_unique<WarmPool>(options_.warm, std::move(pool));
}

Result<std::shared_ptr<SandboxMachine>> LocalNode::make(const SandboxSpec& spec) {
    GB_TRY(cleared());
    if (!is_sandbox_name(spec.id)) return fail(ErrorCode::invalid_argument, "not a sandbox's id: " + spec.id);
    GB_TRY_ASSIGN(StoredTemplate from, spec.snapshot_build.empty() ? templates_.find(spec.template_id)
                                                                   : snapshots_.find(spec.snapshot_build));
    GB_TRY(check_vmm(from.manifest));
    GB_TRY_ASSIGN(net::EgressPolicy policy, policy_of(spec.network));
    return take_or_start(from, spec, policy);
}

Result<std::shared_ptr<SandboxMachine>> LocalNode::make_again(const SandboxSpec& spec) {
    GB_TRY(cleared());
    if (!is_sandbox_name(spec.id)) return fail(ErrorCode::not_found, "no paused sandbox '" + spec.id + "'");
    const SandboxFolder folder = folder_of(spec.id);
    auto paused = read_paused(folder);
    if (!paused) {
        Error error = paused.error();
        if (error.code == ErrorCode::not_found) error.message = "no paused sandbox '" + spec.id + "'";
        if (error.code == ErrorCode::aborted) error.code = ErrorCode::data_loss;
        return std::unexpected(std::move(error));
    }
    if (paused->mode == PauseMode::with_memory && paused->from.vmm_id != machinery_.engine->vmm_root().id)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("the sandbox was paused with another QEMU ({}) and can only be resumed with that",
                        paused->from.vmm_version));
    GB_TRY_ASSIGN(net::EgressPolicy policy, policy_of(spec.network));
    const WarmPool::Creating creating(*warm_, static_cast<std::uint64_t>(paused->from.info.memory_mib));
    GB_TRY(make_room(paused->from));
    const auto build = templates_.find_build(paused->from.image_id());
    const StoredTemplate from{paused->from, base_of(folder, build ? build->folder : fs::path())};
    return SandboxMachine::resume(parts(), from, *paused, spec, std::move(policy));
}

awaitable<Status> LocalNode::create(SandboxSpec spec) {
    GB_CO_TRY_ASSIGN(std::shared_ptr<SandboxMachine> machine,
                     co_await offload(pool_, [&] { return make(spec); }));
    Status taken = take_in(machine);
    if (!taken) co_await offload(pool_, [&] { return machine->end(); });
    co_return taken;
}

awaitable<Status> LocalNode::resume(SandboxSpec spec) {
    co_await taken_over(spec.id);
    if (find_watched(spec.id))
        co_return fail(ErrorCode::already_exists, fmt::format("sandbox '{}' is running", spec.id));
    GB_CO_TRY_ASSIGN(std::shared_ptr<SandboxMachine> machine,
                     co_await offload(pool_, [&] { return make_again(spec); }));
    Status taken = take_in(machine);
    if (!taken) co_await offload(pool_, [&] { return machine->pause(PauseMode::with_memory); });
    co_return taken;
}

Status LocalNode::take_in(const std::shared_ptr<SandboxMachine>& machine) {
    auto watched = std::make_shared<Watched>(executor_);
    watched->machine = machine;
    Status watching = assign_copy(watched->exit, machine->pidfd());
    if (watching) watching = assign_copy(watched->decisions, machine->decision_fd());
    if (watching) watching = assign_copy(watched->flows, machine->flow_fd());
    if (!watching) {
        watched->close();
        return watching;
    }
    {
        std::lock_guard lock(mutex_);
        sandboxes_[machine->id()] = watched;
    }
    watch(watched);
    return {};
}

void LocalNode::watch_exit(const std::shared_ptr<Watched>& watched) {
    std::weak_ptr<Watched> weak = watched;
    watched->exit.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, weak](const boost::system::error_code& ec) {
                                 auto alive = weak.lock();
                                 if (ec || !alive || alive->pausing) return;
                                 if (on_exit_) on_exit_(alive->machine->id(), alive->machine->last_words());
                             });
}

void LocalNode::watch(const std::shared_ptr<Watched>& watched) {
    watch_exit(watched);
    watch_decisions(watched, &Watched::decisions);
    watch_decisions(watched, &Watched::flows);
}

// Decisions are read in strides of 20 ms: a guest that floods costs the host a bounded share of its loop.
void LocalNode::watch_decisions(const std::shared_ptr<Watched>& watched,
                                asio::posix::stream_descriptor Watched::* descriptor) {
    std::weak_ptr<Watched> weak = watched;
    auto timer = std::make_shared<asio::steady_timer>(executor_);
    auto wait = std::make_shared<std::function<void()>>();
    *wait = [weak, timer, descriptor, again = std::weak_ptr<std::function<void()>>(wait)] {
        auto alive = weak.lock();
        auto next = again.lock();
        if (!alive || !next) return;
        auto ready = [weak, timer, next](const boost::system::error_code& ec) {
            auto still = weak.lock();
            if (ec || !still) return;
            still->machine->record_decisions();
            timer->expires_after(std::chrono::milliseconds(20));
            timer->async_wait([next](const boost::system::error_code& timer_ec) {
                if (!timer_ec) (*next)();
            });
        };
        ((*alive).*descriptor).async_wait(asio::posix::stream_descriptor::wait_read, std::move(ready));
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

awaitable<Status> LocalNode::pause(std::string id, PauseMode mode) {
    co_await taken_over(id);
    const std::shared_ptr<Watched> watched = find_watched(id);
    if (!watched)
        co_return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' runs on this machine", id));
    if (watched->pausing) co_return fail(ErrorCode::aborted, fmt::format("sandbox '{}' is being paused", id));
    watched->pausing = true;
    Status paused =
        co_await offload(pool_, [machine = watched->machine, mode] { return machine->pause(mode); });
    if (!paused) {
        watched->pausing = false;
        // If it ended meanwhile, nobody was told; if it runs on, this waits as before.
        boost::system::error_code ignored;
        watched->exit.cancel(ignored);
        if (watched->exit.is_open()) watch_exit(watched);
        co_return paused;
    }
    watched->close();
    std::lock_guard lock(mutex_);
    auto found = sandboxes_.find(id);
    if (found != sandboxes_.end() && found->second == watched) sandboxes_.erase(found);
    co_return Status{};
}

awaitable<Status> LocalNode::snapshot(SnapshotSpec spec) {
    co_await taken_over(spec.sandbox_id);
    std::shared_ptr<SandboxMachine> machine = find(spec.sandbox_id);
    if (!machine)
        co_return fail(ErrorCode::not_found,
                       fmt::format("no sandbox '{}' runs on this machine", spec.sandbox_id));
    co_return co_await offload(pool_, [&] {
        return snapshots_.add(spec.build_id, spec.keep,
                              [&](const fs::path& folder) { return machine->snapshot(spec, folder); });
    });
}

awaitable<Status> LocalNode::remove_snapshot(std::string build_id) {
    co_return co_await offload(pool_, [&] { return snapshots_.remove(build_id); });
}

Result<std::vector<HeldSandbox>> LocalNode::held() {
    std::vector<HeldSandbox> out;
    std::unordered_set<std::string> running;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [id, watched] : sandboxes_) running.insert(id);
        running.insert(to_take_over_.begin(), to_take_over_.end());
    }
    for (const std::string& id : running) out.push_back({id, true});
    std::error_code ec;
    const fs::path sandboxes = options_.data_dir / "sandboxes";
    for (const fs::directory_entry& entry : fs::directory_iterator(sandboxes, ec)) {
        const std::string id = entry.path().filename().string();
        std::error_code missing;
        if (!running.contains(id) && fs::exists(SandboxFolder(entry.path()).manifest(), missing))
            out.push_back({id, false});
    }
    if (ec) return fail_errno(ec.value(), "read " + sandboxes.string());
    return out;
}

void LocalNode::leave_running() {
    if (warm_) warm_->stop();  // they are nobody's
    if (host_watch_) host_watch_->close();
    std::unordered_map<std::string, std::shared_ptr<Watched>> sandboxes;
    {
        std::lock_guard lock(mutex_);
        sandboxes.swap(sandboxes_);
        leaving_ = true;
    }
    takers_.clear();  // joins
    bool any = !machinery_.survivors.empty();
    for (const auto& [id, machine] : std::exchange(taken_over_, {}))
        if (machine && (*machine)->leave()) any = true;
    for (const auto& [id, watched] : sandboxes) {
        watched->close();
        if (watched->machine->leave()) any = true;
    }
    if (any && machinery_.network) machinery_.network->leave();
}

awaitable<Status> LocalNode::destroy(std::string id) {
    co_await taken_over(id);
    std::shared_ptr<Watched> watched;
    {
        std::lock_guard lock(mutex_);
        auto found = sandboxes_.find(id);
        if (found != sandboxes_.end()) {
            watched = std::move(found->second);
            sandboxes_.erase(found);
        }
    }
    if (watched) {
        watched->close();
        co_return co_await offload(pool_, [machine = watched->machine] { return machine->end(); });
    }
    if (!is_sandbox_name(id)) co_return Status{};
    co_return co_await offload(pool_, [folder = folder_of(id), archive = archive(), id]() -> Status {
        GB_TRY(keep_decisions(archive, id, folder));
        // First what makes it a paused one: a folder that is removed by half must not come back after a
        // crash.
        GB_TRY(remove_manifest(folder));
        return remove_tree(folder.path());
    });
}

// A step on the way to a connection: bounded in time, and cut when the sandbox ends.
awaitable<boost::system::error_code> LocalNode::bounded(std::weak_ptr<Watched> sandbox,
                                                        std::shared_ptr<tcp::socket> socket,
                                                        std::chrono::milliseconds limit,
                                                        awaitable<boost::system::error_code> step) {
    // Shared with the timer's handler, which may be queued already when this frame ends.
    asio::steady_timer timer(executor_, limit);
    timer.async_wait([socket](const boost::system::error_code& timer_ec) {
        boost::system::error_code ignored;
        if (!timer_ec) socket->cancel(ignored);
    });
    if (auto found = sandbox.lock()) found->connecting.insert(socket);
    const boost::system::error_code ec = co_await std::move(step);
    timer.cancel();
    if (auto found = sandbox.lock()) found->connecting.erase(socket);
    co_return ec;
}

awaitable<Result<std::shared_ptr<tcp::socket>>> LocalNode::dial(std::string id, std::uint16_t port,
                                                                std::chrono::milliseconds limit,
                                                                boost::system::error_code& why) {
    // Only a weak reference while waiting: a machine must not outlive the node.
    std::weak_ptr<Watched> sandbox;
    UniqueFd fd;
    {
        std::shared_ptr<Watched> found = find_watched(id);
        if (!found) co_return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' on this machine", id));
        GB_CO_TRY_ASSIGN(fd, found->machine->socket());
        sandbox = found;
    }
    auto socket = std::make_shared<tcp::socket>(executor_);
    boost::system::error_code ec;
    socket->assign(tcp::v4(), fd.release(), ec);
    if (ec) co_return fail(ErrorCode::internal, "socket: " + ec.message());
    why = co_await bounded(sandbox, socket, limit,
                           connect_to(socket, {asio::ip::make_address(kGuestAddress), port}));
    if (why) co_return fail(ErrorCode::unavailable, fmt::format("port {}: {}", port, why.message()));
    co_return socket;
}

awaitable<Result<tcp::socket>> LocalNode::connect(std::string id, std::uint16_t port) {
    co_await taken_over(id);
    boost::system::error_code why;
    auto direct = co_await dial(id, port, kConnectLimit, why);
    if (direct) co_return std::move(**direct);
    if (why != asio::error::connection_refused || port == kAgentPort)
        co_return std::unexpected(direct.error());
    // Nobody listens on the guest's address, perhaps somebody does on its loopback.
    boost::system::error_code ignored;
    GB_CO_TRY_ASSIGN(auto agent, co_await dial(id, kAgentPort, kConnectLimit, ignored));
    why = co_await bounded(find_watched(id), agent, kConnectLimit, ask_loopback(*agent, port));
    if (why) co_return fail(ErrorCode::unavailable, fmt::format("port {}: {}", port, why.message()));
    co_return std::move(*agent);
}

awaitable<Result<Telemetry>> LocalNode::telemetry(std::string id, std::uint64_t after) {
    co_await taken_over(id);
    const auto deadline = std::chrono::steady_clock::now() + kTelemetryLimit;
    boost::system::error_code ignored;
    GB_CO_TRY_ASSIGN(auto socket, co_await dial(id, kAgentPort, kTelemetryLimit, ignored));
    // Shared with the timer's handler and with the end of the sandbox, which both may cut it.
    auto connection = std::make_shared<http::ClientConnection>(std::move(*socket));
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
    struct sysinfo memory{};
    if (::sysinfo(&memory) == 0)
        out.memory_mib = static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit >> 20;
    out.memory_reserve_mib = options_.memory_reserve_mib;
    out.warm = warm_->waiting();
    out.creates_from_pool = creates_from_pool_;
    out.creates_from_restore = creates_from_restore_;
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

Result<std::vector<DiskUse>> LocalNode::disk_use() {
    std::vector<DiskUse> out;
    auto add = [&](DiskKind kind, const char* below, const std::string& id) -> Status {
        auto bytes = own_bytes(options_.data_dir / below / id);
        if (!bytes && bytes.error().code == ErrorCode::not_found) return {};  // it has gone meanwhile
        if (!bytes) return std::unexpected(bytes.error());
        out.push_back({.id = id, .kind = kind, .bytes = *bytes});
        return {};
    };
    GB_TRY_ASSIGN(auto sandboxes, held());
    for (const HeldSandbox& sandbox : sandboxes) GB_TRY(add(DiskKind::sandbox, "sandboxes", sandbox.id));
    GB_TRY_ASSIGN(auto builds, snapshots_.list());
    for (const std::string& id : builds) GB_TRY(add(DiskKind::build, "snapshots", id));
    return out;
}

void LocalNode::use_secrets(SecretSource source) {
    given_secrets_ = std::move(source);
}

// At the start and then every hour: what it removes is a matter of days.
void LocalNode::sweep_archive() {
    remove_old_decisions(archive(), now_ms() - std::int64_t{options_.network.decisions_days} * 86'400'000);
    sweep_timer_.expires_after(std::chrono::hours(1));
    sweep_timer_.async_wait([this](const boost::system::error_code& ec) {
        if (!ec) sweep_archive();
    });
}

Result<fs::path> LocalNode::decision_log_of(const std::string& id) const {
    if (is_sandbox_name(id)) {
        std::error_code ec;
        if (fs::exists(folder_of(id).log(), ec)) return folder_of(id).log();
        if (fs::path log = archived_log(archive(), id); fs::exists(log, ec)) return log;
        if (fs::exists(folder_of(id).manifest(), ec)) return folder_of(id).log();
    }
    return fail(ErrorCode::not_found,
                fmt::format("no sandbox '{}' on this machine, and no decisions of it", id));
}

Result<DecisionPage> LocalNode::decisions_after(const std::string& id, const std::string& after,
                                                std::size_t limit) {
    if (auto machine = find(id)) machine->record_decisions();
    GB_TRY_ASSIGN(const fs::path log, decision_log_of(id));
    GB_TRY_ASSIGN(net::LogPart part, net::read_lines(log, after, limit));
    return DecisionPage{std::move(part.lines), std::move(part.next)};
}

awaitable<Status> LocalNode::set_network(std::string id, NetworkRequest network) {
    co_await taken_over(id);
    std::shared_ptr<SandboxMachine> machine = find(id);
    if (!machine)
        co_return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' runs on this machine", id));
    co_return co_await offload(pool_, [&] { return machine->set_network(network); });
}

Result<EffectiveNetwork> LocalNode::network(const std::string& id) {
    std::shared_ptr<SandboxMachine> machine = find(id);
    if (!machine) return fail(ErrorCode::not_found, fmt::format("no sandbox '{}' runs on this machine", id));
    GB_TRY_ASSIGN(const net::EgressPolicy policy, machine->policy());
    return effective_network(policy, machinery_.network->ceiling(), options_.network);
}

}  // namespace gb
