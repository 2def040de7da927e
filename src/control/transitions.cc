// SPDX-License-Identifier: Apache-2.0
// How a sandbox moves between its states, and who waits for whom.
#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/commit.h"
#include "control/events.h"
#include "control/sandbox_entry.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using enum SandboxState;

namespace {

constexpr int kLeastWakeTimeout = 300;  // seconds, of a sandbox that traffic woke, contract 7.3
constexpr auto kPauseRetry = std::chrono::seconds(10);

// When a run ends that shall last so long from now on, and no longer than its plan allows.
std::int64_t end_of(const SandboxRecord& record, const Plan& plan, std::int64_t timeout_s) {
    return std::min(now_ms() + timeout_s * 1000, record.started_ms + std::int64_t{plan.max_lifetime_s} * 1000);
}

}  // namespace

awaitable<Result<Plan>> Sandboxes::plan_of(std::string team_id) {
    GB_CO_TRY_ASSIGN(auto teams, co_await offload(pool_, [this] { return store_.teams(); }));
    auto found = std::ranges::find(teams, team_id, &Team::id);
    co_return options_.plans.of(found == teams.end() ? "" : found->plan);
}

// Waits while the sandbox is in a transition. It may be gone afterwards, or in another one already.
awaitable<void> Sandboxes::settle(EntryPtr entry) const {
    const SandboxState met = entry->record.state;
    while (is_transition(entry->record.state) && entry->record.state == met && entries_.contains(entry->record.id))
        co_await entry->changed.async_wait(kErrorTuple);
}

awaitable<Status> Sandboxes::move_end(EntryPtr entry, std::int64_t ends_ms, Direction direction) {
    const std::string run_id = entry->record.run_id;
    const Turn turn = co_await take_turn(entry);
    // Others may have moved meanwhile.
    if (entry->record.state != running || entry->record.run_id != run_id)
        co_return no_such_sandbox(entry->record.id);
    if (direction == Direction::only_later && ends_ms <= entry->record.ends_ms) co_return Status{};
    Change change;
    change.put_sandboxes.push_back(entry->record);
    change.put_sandboxes.back().ends_ms = ends_ms;
    tell(change, updated_event(change.put_sandboxes.back()));
    GB_CO_TRY(co_await commit(store_, std::move(change)));
    if (entry->record.state != running) co_return no_such_sandbox(entry->record.id);  // it was ended
    entry->record.ends_ms = ends_ms;
    arm(entry);
    co_return Status{};
}

awaitable<Result<SandboxView>> Sandboxes::connect(Team team, std::string id, std::int64_t timeout_s, Memory memory) {
    const Plan& plan = options_.plans.of(team.plan);
    GB_CO_TRY(check_lifetime(plan, timeout_s));
    for (int tries = 0; tries < 4; ++tries) {
        GB_CO_TRY_ASSIGN(auto entry, find(team, id));
        SandboxRecord& record = entry->record;
        if (record.state == running) {
            const std::int64_t wanted = end_of(record, plan, timeout_s);
            if (wanted > record.ends_ms) GB_CO_TRY(co_await move_end(entry, wanted, Direction::only_later));
            co_return view(*entry);
        }
        if (record.state == killing) co_return no_such_sandbox(id);
        if (record.state == paused) {
            // What the guest had not written yet is in that memory: a boot without it would find a broken file system.
            if (memory == Memory::dropped && record.paused_with_memory)
                co_return fail(ErrorCode::invalid_argument,
                               fmt::format("sandbox_memory_override_disabled: Sandbox \"{}\" was paused with its memory "
                                           "and can only be resumed with it",
                                           id));
            Status woken = co_await resume_entry(entry, static_cast<int>(timeout_s));
            if (!woken && woken.error().code == ErrorCode::aborted) continue;  // by somebody else
            if (!woken) co_return std::unexpected(woken.error());
            SandboxView out = view(*entry);
            out.resumed = true;
            co_return out;
        }
        co_await settle(entry);
    }
    co_return fail(ErrorCode::failed_precondition,
                   fmt::format("Sandbox \"{}\" is being paused or resumed; try again", id));
}

// Of several at once one does the work; whoever found it not running yet shares that one's result.
awaitable<Result<SandboxView>> Sandboxes::resume(Team team, std::string id, std::int64_t timeout_s) {
    const Plan& plan = options_.plans.of(team.plan);
    GB_CO_TRY(check_lifetime(plan, timeout_s));
    for (bool overlaps = false;; overlaps = true) {
        GB_CO_TRY_ASSIGN(auto entry, find(team, id));
        if (entry->record.state == killing) co_return no_such_sandbox(id);
        if (entry->record.state == running) {
            if (!overlaps)
                co_return fail(ErrorCode::failed_precondition, fmt::format("Sandbox \"{}\" is already running", id));
            const std::int64_t wanted = end_of(entry->record, plan, timeout_s);
            if (wanted > entry->record.ends_ms) GB_CO_TRY(co_await move_end(entry, wanted, Direction::only_later));
        } else if (entry->record.state == paused) {
            Status woken = co_await resume_entry(entry, static_cast<int>(timeout_s));
            if (!woken && woken.error().code == ErrorCode::aborted) continue;  // by somebody else
            if (!woken) co_return std::unexpected(woken.error());
        } else {
            co_await settle(entry);
            continue;
        }
        SandboxView out = view(*entry);
        out.resumed = true;
        co_return out;
    }
}

awaitable<Status> Sandboxes::set_timeout(Team team, std::string id, std::int64_t timeout_s) {
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    const Plan& plan = options_.plans.of(team.plan);
    if (entry->record.state == pausing || entry->record.state == resuming)
        co_return fail(ErrorCode::failed_precondition,
                       fmt::format("Sandbox \"{}\" is being paused or resumed; try again", id));
    if (entry->record.state != running) co_return no_such_sandbox(id);
    if (timeout_s > plan.max_lifetime_s)
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("Max instance length exceeded: at most {} seconds from the start",
                                   plan.max_lifetime_s));
    const std::int64_t wanted = end_of(entry->record, plan, std::max<std::int64_t>(timeout_s, 0));
    co_return co_await move_end(entry, wanted, Direction::both_ways);
}

awaitable<Status> Sandboxes::extend(Team team, std::string id, std::int64_t timeout_s) {
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    if (entry->record.state != running) co_return no_such_sandbox(id);
    const std::int64_t wanted = end_of(entry->record, options_.plans.of(team.plan), timeout_s);
    if (wanted > entry->record.ends_ms) GB_CO_TRY(co_await move_end(entry, wanted, Direction::only_later));
    co_return Status{};
}

// Of several at once one does the work; whoever found it not paused yet shares that one's result.
awaitable<Status> Sandboxes::pause(Team team, std::string id, PauseMode mode, Guest guest) {
    bool overlaps = false;
    // What is left to say of a sandbox that does not run.
    auto paused_already = [&](const Entry& entry) -> Status {
        if (entry.record.state == killing) return no_such_sandbox(id);
        if (!overlaps)
            return fail(ErrorCode::failed_precondition,
                        fmt::format("Sandbox \"{}\" is already {}", id, to_string(entry.record.state)));
        if (entry.record.paused_with_memory == (mode == PauseMode::with_memory)) return {};
        return fail(ErrorCode::failed_precondition,
                    fmt::format("Sandbox \"{}\" was paused {} its memory by another request meanwhile", id,
                                entry.record.paused_with_memory ? "with" : "without"));
    };
    for (;;) {
        GB_CO_TRY_ASSIGN(auto entry, find(team, id));
        if (is_transition(entry->record.state) && entry->record.state != killing) {
            overlaps = true;
            co_await settle(entry);
            continue;
        }
        if (entry->record.state != running) co_return paused_already(*entry);
        overlaps = true;
        if (guest == Guest::must_answer && !co_await node_.telemetry(entry->record.id, 0))
            co_return fail(ErrorCode::unavailable,
                           fmt::format("the guest of sandbox \"{}\" does not answer; it runs on", id));
        Turn turn = co_await take_turn(entry);
        if (entry->record.state == running) co_return co_await pause_entry(entry, mode, std::move(turn));
    }
}

awaitable<Status> Sandboxes::pause_entry(EntryPtr entry, PauseMode mode, Turn turn) {
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");
    SandboxRecord& record = entry->record;
    if (!entry->move_to(pausing)) co_return no_such_sandbox(record.id);
    turn.release();  // who changes its row now waits for the end of the transition
    const std::int64_t asked_ms = monotonic_ms();
    entry->deadline.cancel();
    if (on_gone_) on_gone_(record.id);
    if (before_end_) co_await before_end_(record);
    Status saved = co_await node_.pause(record.id, mode);
    if (!saved) {
        log::error("a sandbox could not be paused", {{"sandbox", record.id}, {"error", saved.error().message}});
        if (entry->move_to(running)) arm_or_end(entry);
        co_return saved;
    }
    const std::int64_t now = now_ms();
    record.ends_ms = now;
    record.paused_with_memory = mode == PauseMode::with_memory;
    entry->run.seen_ms = entry->run.ended_ms = now;
    entry->exited_early = false;
    Change change;
    change.put_sandboxes.push_back(record);
    change.put_sandboxes.back().state = paused;
    change.put_runs.push_back(entry->run);
    tell(change, paused_event(record, entry->run));
    Status stored = co_await commit(store_, std::move(change));
    (void)entry->move_to(paused);  // its files say so, and a restart will find them
    log::info("sandbox paused", {{"sandbox", record.id}, {"took_ms", monotonic_ms() - asked_ms}});
    co_return stored;
}

awaitable<Status> Sandboxes::resume_entry(EntryPtr entry, int timeout_s) {
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");
    SandboxRecord& record = entry->record;
    GB_CO_TRY_ASSIGN(Plan plan, co_await plan_of(record.team_id));
    Turn turn = co_await take_turn(entry);
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");
    if (record.state != paused)  // somebody else was quicker
        co_return fail(ErrorCode::aborted, fmt::format("Sandbox \"{}\" is being resumed; try again", record.id));
    GB_CO_TRY(check_place(record.team_id, plan));
    GB_CO_TRY_ASSIGN(SandboxSpec spec, spec_of(*entry));
    if (!entry->move_to(resuming)) co_return no_such_sandbox(record.id);
    turn.release();
    const std::int64_t asked_ms = monotonic_ms();
    Status woken = co_await node_.resume(std::move(spec));
    if (!woken) {
        log::error("a sandbox could not be resumed", {{"sandbox", record.id}, {"error", woken.error().message}});
        (void)entry->move_to(paused);
        co_return woken;
    }
    const std::int64_t now = now_ms();
    start_run(*entry, now, now + std::int64_t{std::min(timeout_s, plan.max_lifetime_s)} * 1000);
    Change change;
    change.put_sandboxes.push_back(record);
    change.put_sandboxes.back().state = running;
    change.put_runs.push_back(entry->run);
    tell(change, resumed_event(record));
    Status stored = co_await commit(store_, std::move(change));
    if (entry->move_to(running)) arm_or_end(entry);
    log::info("sandbox resumed", {{"sandbox", record.id}, {"took_ms", monotonic_ms() - asked_ms}});
    co_return stored;
}

awaitable<Status> Sandboxes::wake(std::string id, Waking waking) {
    for (int tries = 0; tries < 4; ++tries) {
        auto found = entries_.find(id);
        if (found == entries_.end()) co_return no_such_sandbox(id);
        EntryPtr entry = found->second;
        SandboxRecord& record = entry->record;
        if (record.state == running) co_return Status{};
        if (record.state == killing || record.state == creating) co_return no_such_sandbox(id);
        if (record.state == paused) {
            if (waking == Waking::refused || !record.auto_resume || !record.paused_with_memory)
                co_return no_such_sandbox(id);
            Status woken = co_await resume_entry(entry, std::max(record.timeout_s, kLeastWakeTimeout));
            if (!woken && woken.error().code != ErrorCode::aborted) co_return woken;
            continue;
        }
        co_await settle(entry);
    }
    co_return fail(ErrorCode::failed_precondition, fmt::format("Sandbox \"{}\" is being paused or resumed", id));
}

awaitable<Status> Sandboxes::kill(Team team, std::string id) {
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    // A machine is saved or restored as a whole before it can be ended.
    while (entry->record.state == pausing || entry->record.state == resuming) co_await settle(entry);
    if (entry->record.state == killing) {
        co_await settle(entry);
        co_return Status{};
    }
    co_return co_await end(entry, "killed by a request");
}

awaitable<Status> Sandboxes::end(EntryPtr entry, std::string reason, Ending ending) {
    const std::string id = entry->record.id;
    const bool ran = entry->record.state == running;
    if (!entry->move_to(killing)) co_return Status{};
    entry->deadline.cancel();
    const std::int64_t now = now_ms();
    if (ran && on_gone_) on_gone_(id);
    if (ran && before_end_ && ending == Ending::asked) co_await before_end_(entry->record);
    Status destroyed = co_await node_.destroy(id);
    if (!destroyed)
        log::error("a sandbox could not be removed whole", {{"sandbox", id}, {"error", destroyed.error().message}});
    Change change;
    change.remove_sandboxes.push_back(id);
    if (ran) {
        entry->run.seen_ms = entry->run.ended_ms = now;
        change.put_runs.push_back(entry->run);
    }
    tell(change, killed_event(entry->record, ran ? &entry->run : nullptr, reason));
    Status removed = co_await commit(store_, std::move(change));
    forget(*entry);
    if (!destroyed) co_return destroyed;
    log::info("sandbox ended", {{"sandbox", id}, {"reason", reason}});
    co_return removed;
}

void Sandboxes::arm_or_end(const EntryPtr& entry) {
    if (!entry->exited_early) return arm(entry);
    entry->exited_early = false;
    asio::co_spawn(executor_, end(entry, "its machine ended", Ending::by_itself), asio::detached);
}

void Sandboxes::arm(const EntryPtr& entry) {
    const std::int64_t left = std::max<std::int64_t>(0, entry->record.ends_ms - now_ms());
    entry->deadline.expires_after(std::chrono::milliseconds(left));
    entry->deadline.async_wait([this, entry](const boost::system::error_code& ec) {
        if (ec || entry->record.state != running) return;
        // The timer follows the monotonic clock, the deadline the wall clock: look again after a jump.
        if (entry->record.ends_ms > now_ms()) return arm(entry);
        asio::co_spawn(executor_, lifetime_over(entry), asio::detached);
    });
}

awaitable<void> Sandboxes::lifetime_over(EntryPtr entry) {
    if (!entry->record.auto_pause) {
        co_await end(entry, "its lifetime ended");
        co_return;
    }
    const std::string run_id = entry->record.run_id;
    Turn turn = co_await take_turn(entry);
    if (entry->record.state != running || entry->record.run_id != run_id) co_return;
    if (entry->record.ends_ms > now_ms()) {  // its end was moved just now
        arm(entry);
        co_return;
    }
    Status done = co_await pause_entry(
        entry, entry->record.auto_pause_memory ? PauseMode::with_memory : PauseMode::filesystem_only,
        std::move(turn));
    if (done || entry->record.state != running || entry->record.run_id != run_id) co_return;
    // What was asked for is that nothing is lost: it runs on until it can be saved.
    entry->deadline.expires_after(kPauseRetry);
    entry->deadline.async_wait([this, entry](const boost::system::error_code& ec) {
        if (ec || entry->record.state != running || entry->record.ends_ms > now_ms()) return;
        asio::co_spawn(executor_, lifetime_over(entry), asio::detached);
    });
}

void Sandboxes::exited(const std::string& id, const std::string& reason) {
    auto found = entries_.find(id);
    if (found == entries_.end()) return;
    EntryPtr entry = found->second;
    log::warn("a sandbox ended by itself", {{"sandbox", id}, {"reason", reason}});
    switch (entry->record.state) {
        case creating:
            (void)entry->move_to(killing);  // create() notices and cleans up
            return;
        case pausing:
        case resuming:
            entry->exited_early = true;  // arm_or_end() notices when it counts as running again
            return;
        case running:
            asio::co_spawn(executor_, end(entry, reason, Ending::by_itself), asio::detached);
            return;
        case paused:
        case killing:
            return;
    }
}

awaitable<void> Sandboxes::kill_all() {
    stopping_ = true;
    asio::steady_timer pause(executor_);
    for (bool left = true; left;) {
        left = false;
        for (const auto& [id, entry] : entries_) {
            left = left || entry->record.state != paused;
            if (entry->record.state == creating)
                (void)entry->move_to(killing);  // its create() gives up and cleans up
            else if (entry->record.state == running)
                asio::co_spawn(executor_, end(entry, "the server stops"), asio::detached);
        }
        pause.expires_after(std::chrono::milliseconds(20));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

awaitable<void> Sandboxes::leave_running() {
    stopping_ = true;
    co_await node_.taken_over({});
    for (;;) {
        EntryPtr busy;
        for (const auto& [id, entry] : entries_)
            if (is_transition(entry->record.state)) busy = entry;
        if (!busy) break;
        co_await settle(busy);
    }
    const auto busy_yet = [](const auto& item) {
        return item.second->being_copied || item.second->turn != item.second->next_ticket;
    };
    asio::steady_timer pause(executor_);
    while (std::ranges::any_of(entries_, busy_yet)) {
        pause.expires_after(std::chrono::milliseconds(20));
        co_await pause.async_wait(asio::use_awaitable);
    }
    for (const auto& [id, entry] : entries_) entry->deadline.cancel();
    if (Status seen = store_.see_open_runs(now_ms()); !seen)
        log::warn("what runs was not recorded", {{"error", seen.error().message}});
    node_.leave_running();
}

}  // namespace gb
