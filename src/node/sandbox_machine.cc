#include "node/sandbox_machine.h"

#include <deque>
#include <sstream>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "node/guest_link.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

// A restored guest that is emulated needs its code translated again before its first answer; loaded hosts are slow.
constexpr std::chrono::seconds kIdentityLimit{30};

// The last `limit` lines of a file, oldest first.
void tail_lines(const fs::path& path, std::size_t limit, std::deque<std::string>& lines) {
    auto text = read_file(path);
    if (!text) return;
    std::istringstream in(*std::move(text));
    for (std::string line; std::getline(in, line);) {
        lines.push_back(std::move(line));
        if (lines.size() > limit) lines.pop_front();
    }
}

}  // namespace

Result<std::shared_ptr<SandboxMachine>> SandboxMachine::start(const Parts& parts, const StoredTemplate& from,
                                                              const SandboxSpec& spec, net::EgressPolicy policy) {
    std::shared_ptr<SandboxMachine> out(new SandboxMachine(parts, spec.id, from.manifest));
    if (Status status = out->build(from, spec, std::move(policy)); !status) {
        (void)out->end();
        // What the host's files and the guest say must not look like the client's mistake.
        Error error = status.error();
        using enum ErrorCode;
        if (error.code != unavailable && error.code != no_space && error.code != deadline_exceeded) error.code = internal;
        return std::unexpected(error.with("start the sandbox"));
    }
    return out;
}

Status SandboxMachine::build(const StoredTemplate& from, const SandboxSpec& spec, net::EgressPolicy policy) {
    const std::int64_t asked_us = monotonic_us();
    GB_TRY_ASSIGN(slot_, parts_.slots.take());
    slot_number_ = slot_->number();
    GB_TRY(slot_->set_policy(std::move(policy)));
    GB_TRY(make_dirs(folder_, 0711));
    GB_TRY_ASSIGN(log_, net::DecisionLog::open(folder_ / "egress.log"));
    const fs::path disk = folder_ / "disk.qcow2";
    GB_TRY(copy_file_sparse(from.overlay(), disk, 0600));

    const std::int64_t placed_us = monotonic_us();
    engine::MachineSpec machine;
    machine.jail.uid = machine.jail.gid = machine_uid(parts_.machinery.network->tag(), slot_number_);
    machine.jail.netns_fd = slot_->netns_fd();
    machine.jail.cgroup_name = id_;
    machine.cpu_count = static_cast<unsigned>(manifest_.info.cpu_count);
    machine.memory_mib = static_cast<unsigned>(manifest_.info.memory_mib);
    machine.disk = {disk, engine::DiskFormat::qcow2, from.disk()};
    machine.memory = {from.memory(), engine::MemoryMapping::copy_on_write};
    machine.tap = slot_->take_tap();
    machine.mac = guest_mac();
    machine.accelerator = manifest_.accelerator;
    GB_TRY_ASSIGN(machine_, parts_.machinery.engine->restore(std::move(machine), from.state(), engine::AfterLoad::run));

    const std::int64_t restored_us = monotonic_us();
    GuestIdentity identity;
    identity.sandbox_id = id_;
    identity.template_id = manifest_.info.id;
    identity.access_token = spec.access_token;
    identity.default_user = manifest_.default_user;
    identity.workdir = manifest_.workdir;
    identity.env_vars = manifest_.env;
    for (const auto& [name, value] : spec.env_vars) identity.env_vars[name] = value;
    GB_TRY(guest_link(*slot_).init(identity, kIdentityLimit));
    log::debug("machine started", {{"sandbox", id_},
                                   {"place_us", placed_us - asked_us},
                                   {"restore_us", restored_us - placed_us},
                                   {"identity_us", monotonic_us() - restored_us}});
    return {};
}

SandboxMachine::~SandboxMachine() {
    (void)end();
}

Status SandboxMachine::end() {
    std::lock_guard lock(end_mutex_);
    if (ended_) return {};
    if (machine_) GB_TRY(machine_->kill());
    {
        std::lock_guard parts_lock(mutex_);
        record_locked();
        log_.reset();
        if (slot_) parts_.slots.discard(std::move(slot_));
    }
    GB_TRY(remove_tree(folder_));
    ended_ = true;
    return {};
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
    if (auto suppressed = slot_->suppressed(); suppressed) (void)log_->note_suppressed(*suppressed);
}

void SandboxMachine::record(const net::Decision& decision) {
    std::lock_guard lock(mutex_);
    if (log_) (void)log_->append(std::span(&decision, 1));
}

Result<std::vector<std::string>> SandboxMachine::decisions(std::size_t limit) {
    record_decisions();  // reading the files needs no lock: they only grow, or move away as a whole
    std::deque<std::string> lines;
    tail_lines(folder_ / "egress.log.1", limit, lines);
    tail_lines(folder_ / "egress.log", limit, lines);
    return std::vector<std::string>(lines.begin(), lines.end());
}

}  // namespace gb
