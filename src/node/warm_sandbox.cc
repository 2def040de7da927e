// SPDX-License-Identifier: Apache-2.0
// The part of SandboxMachine that is about waiting for an owner.
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "node/guest_link.h"
#include "node/sandbox_machine.h"
#include "node/warm_exercise.h"

namespace gb {
namespace {

// The guest runs already and has nothing else to do; who waits for it could have had a new one.
constexpr std::chrono::seconds kHandOverLimit{5};
// For the guest to see the ends of the exercise's connections: what is left then is done at the hand-over.
constexpr useconds_t kSettleUs = 50'000;

// Being made ready must not cost those that somebody uses.
constexpr unsigned kWaitingWeight = 1;

// Of a folder and a control group, but never of a sandbox: those have no dots.
std::string warm_name() {
    return "warm." + random_id(20);
}

}  // namespace

Result<std::shared_ptr<SandboxMachine>> SandboxMachine::warm(const Parts& parts, const StoredTemplate& from,
                                                             const std::stop_token& over) {
    std::shared_ptr<SandboxMachine> out(new SandboxMachine(parts, warm_name(), from));
    if (Status status = out->warm_up(from, over); !status) {
        (void)out->end();
        return std::unexpected(status.error());
    }
    return out;
}

Status SandboxMachine::warm_up(const StoredTemplate& from, const std::stop_token& over) {
    const std::int64_t begun_us = monotonic_us();
    // Not one of those that are ready: they are for creates. It is closed, and stays so.
    GB_TRY_ASSIGN(slot_, net::Slot::create(*parts_.machinery.network));
    slot_number_ = slot_->number();
    GB_TRY(make_dirs(folder_.path(), 0711));
    GB_TRY_ASSIGN(const StoredTemplate on, lay_out(from));
    engine::MachineSpec spec = machine_spec(on);
    spec.jail.limits.cpu_weight = kWaitingWeight;
    GB_TRY_ASSIGN(machine_,
                  parts_.machinery.engine->restore(std::move(spec), on.state(), engine::AfterLoad::run));
    const std::int64_t restored_us = monotonic_us();
    GB_TRY(exercise_guest(guest_link(*slot_, *machine_), manifest_, over));
    ::usleep(kSettleUs);
    GB_TRY(machine_->stop());
    log::debug("a warm sandbox waits", {{"template", manifest_.info.name},
                                        {"name", id_},
                                        {"restore_us", restored_us - begun_us},
                                        {"exercise_us", monotonic_us() - restored_us}});
    return {};
}

Status SandboxMachine::hand_over(const SandboxSpec& spec, net::EgressPolicy policy) {
    const std::int64_t asked_us = monotonic_us();
    const SandboxFolder folder(parts_.sandboxes / spec.id);
    if (::rename(folder_.path().c_str(), folder.path().c_str()) != 0)
        return fail_errno(fmt::format("rename to {}", folder.path().string()));
    cgroup_ = std::exchange(id_, spec.id);  // a group keeps its name
    folder_ = folder;
    template_folder_ = base_of(folder_, template_folder_);
    machine_->files_moved(folder_.disk(), template_folder_ / "memory.img");
    // What was decided while nobody had it is nobody's.
    for (int rounds = 0; rounds < 64 && !slot_->read_decisions().empty(); ++rounds) continue;
    GB_TRY_ASSIGN(const std::uint64_t suppressed, slot_->suppressed());
    GB_TRY_ASSIGN(log_, net::DecisionLog::open(folder_.log()));
    log_->suppressed_before(suppressed);
    GB_TRY(open_egress(policy));
    GB_TRY(slot_->set_policy(std::move(policy)));

    const std::int64_t placed_us = monotonic_us();
    GB_TRY(machine_->set_cpu_weight(engine::CgroupLimits{}.cpu_weight));
    GB_TRY(machine_->cont());
    GB_TRY(introduce(spec, spec.access_token, kHandOverLimit));
    const std::int64_t known_us = monotonic_us();
    GB_TRY(remember(spec.network));
    log::debug("machine handed over", {{"sandbox", id_},
                                       {"place_us", placed_us - asked_us},
                                       {"identity_us", known_us - placed_us},
                                       {"record_us", monotonic_us() - known_us}});
    return {};
}

}  // namespace gb
