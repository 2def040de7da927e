// SPDX-License-Identifier: Apache-2.0
#include "node/sandbox_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"
#include "net/netns.h"
#include "node/decision_archive.h"
#include "node/guest_link.h"
#include "node/machine_record.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kHoldLimit{1};  // of a courtesy
constexpr Patience kTrustLimit{30s, 2min};
constexpr std::chrono::seconds kFreezeLimit{50};  // the agent thaws after 60
constexpr Patience kWrittenLimit{2min, 30min};
// Its client has given up by the ceiling; a guest that gets nowhere must not keep its place for ever.
constexpr Patience kBootLimit{2min, 30min};
constexpr Patience kStartLimit{2min, 10min};  // of the agent's start of the start command

// What the host's files and the guest say must not look like the client's mistake. Data can be lost only
// where some was saved: for a new sandbox it is the template that is damaged.
enum class Data { of_template, of_sandbox };
Error for_client(Error error, Data data, std::string_view what) {
    using enum ErrorCode;
    const bool keep = error.code == unavailable || error.code == no_space ||
                      error.code == deadline_exceeded || error.code == unimplemented ||
                      (error.code == data_loss && data == Data::of_sandbox);
    if (!keep) error.code = internal;
    return error.with(what);
}

// The build's files under names of the sandbox's own: a newer build may replace it while the sandbox is
// paused. Where that cannot be, on another file system, the sandbox can be resumed as long as the build is
// there.
void keep_base(const StoredTemplate& from, const SandboxFolder& folder) {
    if (!make_dirs(folder.base(), 0711)) return;
    for (const fs::path& file : {from.disk(), from.memory(), from.kernel(), from.initrd()})
        (void)::link(file.c_str(), (folder.base() / file.filename()).c_str());
}

// The same for a snapshot of the sandbox.
void link_base(const fs::path& base, const fs::path& folder) {
    for (const char* file : {"disk.img", "memory.img", "vmlinuz", "initrd.img"})
        (void)::link((base / file).c_str(), (folder / file).c_str());
}

SavedMemory saved_memory(const engine::SaveResult& result) {
    return {result.state_bytes, result.state_sha256, result.memory_bytes, result.memory_checksum};
}

// The engine checks the memory as it reads it, and knows nothing of the state.
Result<engine::SavedFiles> saved_files(const fs::path& state, const fs::path& delta,
                                       const SavedMemory& saved) {
    GB_TRY_ASSIGN(const std::string bytes, read_file(state));
    if (sha256_hex(bytes) != saved.state_sha256)
        return fail(ErrorCode::data_loss, "the saved state of the machine is damaged");
    return engine::SavedFiles(state, delta, saved.memory_checksum);
}

}  // namespace

Result<net::EgressPolicy> policy_of(const NetworkRequest& request) {
    return net::parse_policy(request);
}

Result<std::shared_ptr<SandboxMachine>> SandboxMachine::start(const Parts& parts, const StoredTemplate& from,
                                                              const SandboxSpec& spec,
                                                              net::EgressPolicy policy) {
    std::shared_ptr<SandboxMachine> out(new SandboxMachine(parts, spec.id, from));
    if (Status status = out->build(from, spec, std::move(policy)); !status) {
        (void)out->end();
        return std::unexpected(for_client(status.error(), Data::of_template, "start the sandbox"));
    }
    return out;
}

Result<std::shared_ptr<SandboxMachine>> SandboxMachine::resume(const Parts& parts, const StoredTemplate& from,
                                                               const PausedSandbox& paused,
                                                               const SandboxSpec& spec,
                                                               net::EgressPolicy policy) {
    std::shared_ptr<SandboxMachine> out(new SandboxMachine(parts, spec.id, from));
    if (Status status = out->wake(from, paused, spec, std::move(policy)); !status) {
        std::lock_guard lock(out->end_mutex_);
        (void)out->release();
        out->life_ = Life::paused;
        return std::unexpected(for_client(status.error(), Data::of_sandbox, "resume the sandbox"));
    }
    return out;
}

Status SandboxMachine::place(net::EgressPolicy policy) {
    GB_TRY_ASSIGN(slot_, parts_.slots.take());
    slot_number_ = slot_->number();
    GB_TRY(make_dirs(folder_.path(), 0711));
    GB_TRY_ASSIGN(log_, net::DecisionLog::open(folder_.log()));
    GB_TRY(open_egress(policy));
    return slot_->set_policy(std::move(policy));
}

Result<StoredTemplate> SandboxMachine::lay_out(const StoredTemplate& from) {
    GB_TRY(copy_file_sparse(from.overlay(), folder_.disk(), 0600));
    keep_base(from, folder_);
    StoredTemplate on = from;
    on.base = template_folder_ = base_of(folder_, template_folder_);
    return on;
}

engine::MachineSpec SandboxMachine::machine_spec(const StoredTemplate& from) {
    engine::MachineSpec machine =
        sandbox_machine_spec(folder_, from, parts_.machinery.network->tag(), slot_number_);
    machine.jail.netns_fd = slot_->netns_fd();
    machine.tap = slot_->take_tap();
    return machine;
}

Status SandboxMachine::introduce(const SandboxSpec& spec, std::string access_token,
                                 const Patience& patience) const {
    GuestIdentity identity;
    identity.sandbox_id = id_;
    identity.template_id = manifest_.info.id;
    identity.access_token = std::move(access_token);
    identity.default_user = manifest_.default_user;
    identity.workdir = manifest_.workdir;
    identity.env_vars = manifest_.env;
    for (const auto& [name, value] : spec.env_vars) identity.env_vars[name] = value;
    if (!spec.network.rules.empty() && authority_) {
        identity.authority_pem = authority_->pem();
        GB_TRY_ASSIGN(identity.authority_hash, authority_->subject_hash());
    }
    return guest_link(*slot_, *machine_).init(identity, patience);
}

Status SandboxMachine::remember(const NetworkRequest& network) const {
    MachineRecord record;
    record.id = id_;
    record.cgroup = cgroup_;
    record.from = manifest_;
    GB_TRY_ASSIGN(record.process, machine_->trace());
    record.slot = slot_number_;
    GB_TRY_ASSIGN(record.netns, net::netns_id(slot_->netns_fd()));
    record.network = network;
    return put_record(folder_.machine(), record);
}

Result<std::shared_ptr<SandboxMachine>> SandboxMachine::adopt(const Parts& parts, const Survivor& survivor) {
    std::shared_ptr<SandboxMachine> out(new SandboxMachine(parts, survivor.record.id, survivor.from));
    if (Status status = out->take_over(survivor); !status) {
        (void)out->end();
        return std::unexpected(status.error());
    }
    return out;
}

Status SandboxMachine::take_over(const Survivor& survivor) {
    const MachineRecord& record = survivor.record;
    slot_number_ = record.slot;
    cgroup_ = record.cgroup;
    GB_TRY_ASSIGN(machine_, parts_.machinery.engine->adopt(
                                survivor_spec(folder_, survivor, parts_.machinery.network->tag()), record.process));
    GB_TRY_ASSIGN(UniqueFd netns, net::netns_of(machine_->pid()));
    GB_TRY_ASSIGN(const std::uint64_t netns_id, net::netns_id(netns.get()));
    if (!machine_->alive()) return fail(ErrorCode::not_found, "the machine has ended");
    if (netns_id != record.netns)
        return fail(ErrorCode::failed_precondition, "the machine is not in its network namespace");
    GB_TRY_ASSIGN(slot_, net::Slot::adopt(*parts_.machinery.network, record.slot, std::move(netns),
                                          parts_.slots.slot_options()));
    // It is in force all the time; this makes sure, and gives decisions the names of its rules.
    GB_TRY_ASSIGN(net::EgressPolicy policy, policy_of(record.network));
    GB_TRY_ASSIGN(log_, net::DecisionLog::open(folder_.log()));
    GB_TRY_ASSIGN(const std::uint64_t suppressed, slot_->suppressed());
    log_->suppressed_before(suppressed);
    GB_TRY(open_egress(policy));
    GB_TRY(slot_->set_policy(std::move(policy)));
    // What was saved of it, if anything was, is no longer true.
    return remove_paused(folder_);
}

Status SandboxMachine::build(const StoredTemplate& from, const SandboxSpec& spec, net::EgressPolicy policy) {
    const std::int64_t asked_us = monotonic_us();
    GB_TRY(place(std::move(policy)));
    GB_TRY_ASSIGN(const StoredTemplate on, lay_out(from));

    if (from.manifest.boots) return boot(on, spec);
    const std::int64_t placed_us = monotonic_us();
    engine::SavedFiles files(from.state());
    if (from.manifest.saved) {
        GB_TRY_ASSIGN(files, saved_files(from.state(), from.delta(), *from.manifest.saved));
    }
    GB_TRY_ASSIGN(machine_,
                  parts_.machinery.engine->restore(machine_spec(on), files, engine::AfterLoad::run));

    const std::int64_t restored_us = monotonic_us();
    GB_TRY(introduce(spec, spec.access_token));
    GB_TRY(remember(spec.network));
    log::debug("machine started", {{"sandbox", id_},
                                   {"place_us", placed_us - asked_us},
                                   {"restore_us", restored_us - placed_us},
                                   {"identity_us", monotonic_us() - restored_us}});
    return {};
}

Status SandboxMachine::wake(const StoredTemplate& from, const PausedSandbox& paused, const SandboxSpec& spec,
                            net::EgressPolicy policy) {
    const std::int64_t asked_us = monotonic_us();
    GB_TRY(place(std::move(policy)));
    if (paused.mode == PauseMode::with_memory) {
        GB_TRY(load(from, paused, spec));
    } else {
        GB_TRY(boot(from, spec));
    }
    if (Status removed = remove_paused(folder_); !removed)
        log::warn("saved memory of a resumed sandbox is left",
                  {{"sandbox", id_}, {"error", removed.error().message}});
    log::debug("machine resumed", {{"sandbox", id_}, {"took_us", monotonic_us() - asked_us}});
    return {};
}

Status SandboxMachine::load(const StoredTemplate& from, const PausedSandbox& paused,
                            const SandboxSpec& spec) {
    GB_TRY_ASSIGN(const engine::SavedFiles files,
                  saved_files(folder_.state(), folder_.memory(), paused.saved));
    GB_TRY_ASSIGN(machine_,
                  parts_.machinery.engine->restore(machine_spec(from), files, engine::AfterLoad::run));
    Status known = introduce(spec, spec.access_token);
    if (known) known = remember(spec.network);
    if (known) return {};
    // The guest has run, and its disk is no longer the one that was saved with its memory: what it is now is
    // saved.
    if (Status again = save(PauseMode::with_memory); !again)
        log::error("a sandbox could neither be resumed nor paused again",
                   {{"sandbox", id_}, {"error", again.error().message}});
    return known;
}

Status SandboxMachine::boot(const StoredTemplate& from, const SandboxSpec& spec) {
    engine::MachineSpec machine = machine_spec(from);
    machine.kernel = {from.kernel(), from.initrd(), manifest_.command_line};
    // Its memory begins as the template's, which a kernel does not mind: so it can be paused with its memory
    // later.
    GB_TRY_ASSIGN(machine_, parts_.machinery.engine->boot(std::move(machine)));
    const AgentClient agent = guest_link(*slot_, *machine_);
    GB_TRY(agent.wait_ready(kBootLimit));
    if (!manifest_.start_cmd.empty()) {
        GB_TRY(introduce(spec, ""));  // once it has a token, the agent asks for it
        GB_TRY(agent.start(manifest_.start_cmd, "root", "start", kStartLimit));
    }
    GB_TRY(introduce(spec, spec.access_token));
    return remember(spec.network);
}

Status SandboxMachine::pause(PauseMode mode) {
    std::lock_guard lock(end_mutex_);
    if (life_ != Life::running) return fail(ErrorCode::not_found, fmt::format("sandbox '{}' has ended", id_));
    if (Status saved = save(mode); !saved) {
        (void)remove_paused(folder_);  // it runs on, and what was saved is soon not true any more
        return std::unexpected(for_client(saved.error(), Data::of_template, "pause the sandbox"));
    }
    life_ = Life::paused;
    if (Status released = release(); !released)
        log::error("a paused sandbox's machine is not gone whole",
                   {{"sandbox", id_}, {"error", released.error().message}});
    return {};
}

Result<Manifest> SandboxMachine::snapshot(const SnapshotSpec& spec, const fs::path& folder) {
    std::lock_guard lock(end_mutex_);
    if (life_ != Life::running) return fail(ErrorCode::not_found, fmt::format("sandbox '{}' has ended", id_));
    auto copied = copy_to(spec, folder);
    if (!copied) return std::unexpected(for_client(copied.error(), Data::of_template, "take a snapshot"));
    return copied;
}

Result<Manifest> SandboxMachine::copy_to(const SnapshotSpec& spec, const fs::path& folder) {
    if (!has_base("memory.img") || !has_base("disk.img"))
        return fail(ErrorCode::failed_precondition,
                    fmt::format("the template build that sandbox '{}' started from is gone", id_));
    Manifest manifest = manifest_;
    const StoredTemplate copy{manifest, folder};
    if (spec.mode == PauseMode::with_memory) {
        GB_TRY_ASSIGN(manifest.saved, copy_machine(spec, copy));
    } else {
        GB_TRY(check_bootable());
        GB_TRY(while_frozen(engine::AfterSave::run, [&] { return copy_disk(copy); }));
        manifest.boots = true;
    }
    link_base(folder_.base(), folder);
    if (spec.keep == SnapshotSpec::Keep::durable) GB_TRY(sync_path(copy.overlay()));
    manifest.info.id = spec.template_id;
    manifest.info.name = spec.name;
    manifest.info.build_id = spec.build_id;
    manifest.info.created_ms = now_ms();
    for (const auto& [name, value] : spec.env_vars) manifest.env[name] = value;
    return manifest;
}

Status SandboxMachine::copy_disk(const StoredTemplate& copy) {
    return copy_file_sparse(folder_.disk(), copy.overlay(), 0600);
}

// A guest that does not answer is saved as it is: its programs may see the old time for a moment when they go
// on.
void SandboxMachine::hold() {
    if (Status held = guest_link(*slot_, *machine_).hold(kHoldLimit); !held)
        log::debug("a guest's programs are not held", {{"sandbox", id_}, {"error", held.error().message}});
}

void SandboxMachine::release_users() {
    (void)guest_link(*slot_, *machine_).release(kHoldLimit);  // else they go on by themselves, a little later
}

Result<SavedMemory> SandboxMachine::copy_machine(const SnapshotSpec& spec, const StoredTemplate& copy) {
    const auto after =
        spec.keep == SnapshotSpec::Keep::durable ? engine::AfterSave::run : engine::AfterSave::run_unsynced;
    hold();
    // The disk belongs to the memory of one moment, so the guest waits for its copy too.
    auto result = machine_->suspend({copy.state(), copy.delta()}, after,
                                    [&](const engine::SaveResult&) { return copy_disk(copy); });
    release_users();
    if (!result) return std::unexpected(result.error());
    log::debug(
        "machine copied",
        {{"sandbox", id_}, {"data_pages", result->data_pages}, {"stopped_ms", result->stopped_for.count()}});
    return saved_memory(*result);
}

Status SandboxMachine::save(PauseMode mode) {
    if (mode == PauseMode::filesystem_only) return save_filesystem();
    // Without the image that its memory is written over, a delta is worth nothing.
    if (!has_base("memory.img"))
        return fail(ErrorCode::failed_precondition,
                    fmt::format("the template build that sandbox '{}' started from is gone", id_));
    const std::int64_t asked_us = monotonic_us();
    hold();
    auto saved = machine_->suspend({folder_.state(), folder_.memory()}, engine::AfterSave::end,
                                   [&](const engine::SaveResult& result) -> Status {
                                       PausedSandbox paused = describe(PauseMode::with_memory);
                                       GB_TRY_ASSIGN(paused.disk, mark_of(folder_.disk()));
                                       paused.saved = saved_memory(result);
                                       return put_paused(folder_, paused);
                                   });
    if (!saved) {
        release_users();
        return std::unexpected(saved.error());
    }
    log::debug("machine paused", {{"sandbox", id_},
                                  {"data_pages", saved->data_pages},
                                  {"zero_pages", saved->zero_pages},
                                  {"stopped_ms", saved->stopped_for.count()},
                                  {"took_us", monotonic_us() - asked_us}});
    return {};
}

Status SandboxMachine::check_bootable() const {
    if (has_base("vmlinuz") && has_base("initrd.img")) return {};
    return fail(
        ErrorCode::unimplemented,
        fmt::format("template '{0}' has no kernel to boot the sandbox's disk with; run `glovebox template "
                    "prepare {0}` and make a new sandbox",
                    manifest_.info.name));
}

Status SandboxMachine::while_frozen(engine::AfterSave after, const std::function<Status()>& act) {
    const AgentClient agent = guest_link(*slot_, *machine_);
    Status frozen = agent.freeze(kFreezeLimit);
    if (!frozen && frozen.error().code == ErrorCode::deadline_exceeded) {
        // Much to write, or a slow disk. The agent answers again once that is written, and a freeze is soon done then.
        GB_TRY(agent.thaw(kWrittenLimit));
        frozen = agent.freeze(kFreezeLimit);
    }
    GB_TRY(frozen);
    Status done = machine_->stop();
    if (done) done = act();
    if (done && after == engine::AfterSave::end) return {};
    Status goes_on = machine_->cont();
    (void)agent.thaw(kIdentityLimit);
    return done ? goes_on : done;
}

Status SandboxMachine::save_filesystem() {
    GB_TRY(check_bootable());
    return while_frozen(engine::AfterSave::end, [&]() -> Status {
        GB_TRY(sync_path(folder_.disk()));
        PausedSandbox paused = describe(PauseMode::filesystem_only);
        GB_TRY_ASSIGN(paused.disk, mark_of(folder_.disk()));
        return put_paused(folder_, paused);
    });
}

PausedSandbox SandboxMachine::describe(PauseMode mode) const {
    PausedSandbox out;
    out.id = id_;
    out.mode = mode;
    out.paused_ms = now_ms();
    out.from = manifest_;
    return out;
}

bool SandboxMachine::has_base(const char* file) const {
    std::error_code ec;
    return fs::exists(folder_.base() / file, ec) || fs::exists(template_folder_ / file, ec);
}

SandboxMachine::~SandboxMachine() {
    if (life_ == Life::running) (void)end();
}

bool SandboxMachine::leave() {
    std::lock_guard lock(end_mutex_);
    if (life_ != Life::running || !machine_->alive()) return false;
    life_ = Life::left;
    machine_->leave();
    close_egress();
    std::lock_guard parts_lock(mutex_);
    record_locked();
    log_.reset();
    slot_.reset();  // its namespace lives with the machine
    return true;
}

Result<std::shared_ptr<egress::CertificateAuthority>> SandboxMachine::authority_for(
    const net::EgressPolicy& policy) {
    if (policy.rules.empty()) return nullptr;
    if (!authority_) {
        auto kept = egress::CertificateAuthority::load(folder_.authority());
        if (!kept) {
            // None yet, or one that is of no use any more: the guest is told of a new one.
            kept = egress::CertificateAuthority::make(id_);
            if (kept) GB_TRY(kept->save(folder_.authority()));
        }
        if (!kept) return std::unexpected(kept.error());
        authority_ = std::make_shared<egress::CertificateAuthority>(*std::move(kept));
    }
    return authority_;
}

Status SandboxMachine::trust(const egress::CertificateAuthority* authority, const net::EgressPolicy& before) {
    if ((authority != nullptr) == !before.rules.empty()) return {};
    if (authority == nullptr) return guest_link(*slot_, *machine_).trust("", "", kTrustLimit);
    GB_TRY_ASSIGN(const std::string hash, authority->subject_hash());
    return guest_link(*slot_, *machine_).trust(authority->pem(), hash, kTrustLimit);
}

Status SandboxMachine::open_egress(const net::EgressPolicy& policy) {
    GB_TRY_ASSIGN(auto authority, authority_for(policy));
    egress::GatewayParts parts;
    parts.id = id_;
    parts.sockets = slot_->take_egress_sockets();
    parts.socket = [this] { return socket(); };
    parts.decided = [this](const net::Decision& decision) { record(decision); };
    parts.secrets = [source = parts_.secrets, id = id_](std::string_view name) {
        return source(id, std::string(name));
    };
    GB_TRY_ASSIGN(auto port, parts_.egress.attach(std::move(parts)));
    port->set_policy(policy, std::move(authority));
    std::lock_guard lock(mutex_);
    port_ = std::move(port);
    return {};
}

// Not under the lock: what is told meanwhile needs it.
void SandboxMachine::close_egress() {
    std::unique_ptr<egress::EgressPort> port;
    {
        std::lock_guard lock(mutex_);
        port = std::move(port_);
        if (port) egress_suppressed_ = port->suppressed();
    }
}

Status SandboxMachine::release() {
    GB_TRY(remove_record(folder_.machine()));
    if (machine_) GB_TRY(machine_->kill());
    close_egress();
    (void)::unlink(folder_.monitor().c_str());
    std::lock_guard lock(mutex_);
    record_locked();
    if (log_ && slot_)
        if (auto flows = slot_->open_flows()) (void)log_->append(*flows);
    log_.reset();
    if (slot_) parts_.slots.discard(std::move(slot_));
    return {};
}

Status SandboxMachine::end() {
    // First of all: what is half taken down must not be taken over.
    GB_TRY(remove_record(folder_.machine()));
    // Before the lock: it ends the wait of a pause that is under way.
    if (machine_) GB_TRY(machine_->kill());
    std::lock_guard lock(end_mutex_);
    if (life_ == Life::gone) return {};
    GB_TRY(release());
    GB_TRY(keep_decisions(parts_.archive, id_, folder_));
    GB_TRY(remove_tree(folder_.path()));
    life_ = Life::gone;
    return {};
}

Result<net::EgressPolicy> SandboxMachine::policy() const {
    std::lock_guard lock(mutex_);
    if (!slot_) return fail(ErrorCode::not_found, fmt::format("sandbox '{}' has ended", id_));
    return slot_->policy();
}

Status SandboxMachine::set_network(const NetworkRequest& request) {
    GB_TRY_ASSIGN(net::EgressPolicy policy, policy_of(request));
    std::lock_guard life(end_mutex_);  // slot and port stay as long as it is held
    if (life_ != Life::running) return fail(ErrorCode::not_found, fmt::format("sandbox '{}' has ended", id_));
    const net::EgressPolicy before = slot_->policy();
    GB_TRY_ASSIGN(auto authority, authority_for(policy));
    GB_TRY(trust(authority.get(), before));
    port_->set_policy(policy, authority);
    Status changed = slot_->set_policy(std::move(policy));
    if (changed) changed = remember(request);
    if (!changed) {
        port_->set_policy(before, authority_);
        GB_TRY(slot_->set_policy(before));
    }
    return changed;
}

bool SandboxMachine::retry_full_disk() {
    std::unique_lock lock(end_mutex_, std::try_to_lock);
    return lock && life_ == Life::running && machine_->retry_full_disk();
}

std::string SandboxMachine::last_words() const {
    std::string console = machine_->console_tail();
    std::size_t panic = console.rfind("Kernel panic");
    std::string text = panic != std::string::npos ? console.substr(panic, 200) : "the guest ended";
    return text.substr(0, text.find('\n'));
}

Result<SandboxUsage> SandboxMachine::usage() const {
    GB_TRY_ASSIGN(std::uint64_t bytes, machine_->private_bytes());
    return SandboxUsage{bytes};
}

Result<UniqueFd> SandboxMachine::socket() const {
    std::lock_guard lock(mutex_);
    if (!slot_) return fail(ErrorCode::not_found, fmt::format("sandbox '{}' has ended", id_));
    return slot_->socket();
}

void SandboxMachine::record_decisions() {
    std::lock_guard lock(mutex_);
    record_locked();
}

void SandboxMachine::record_locked() {
    if (!log_ || !slot_) return;
    for (int rounds = 0; rounds < 64; ++rounds) {  // bounded: a flood must not keep this thread for ever
        std::vector<net::Decision> decisions = slot_->read_decisions();
        if (decisions.empty()) break;
        if (Status status = log_->append(decisions); !status)
            log::warn("decisions were not written", {{"sandbox", id_}, {"error", status.error().message}});
    }
    if (port_) egress_suppressed_ = port_->suppressed();
    if (auto suppressed = slot_->suppressed(); suppressed)
        (void)log_->note_suppressed(*suppressed + egress_suppressed_);
}

void SandboxMachine::record(const net::Decision& decision) {
    std::lock_guard lock(mutex_);
    if (log_) (void)log_->append(std::span(&decision, 1));
}

}  // namespace gb
