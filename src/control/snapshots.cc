// SPDX-License-Identifier: Apache-2.0
// Copies of running sandboxes: snapshots, which are kept, and forks, which run.
#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/ids.h"
#include "base/log.h"
#include "control/events.h"
#include "control/sandbox_entry.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using enum SandboxState;

namespace {

constexpr int kMostForks = 100;

}  // namespace

bool Sandboxes::uses_build(const std::string& build_id) const {
    return std::ranges::any_of(entries_,
                               [&](const auto& item) { return item.second->record.build_id == build_id; });
}

// It stays a running sandbox all the time: being copied is no state, but two copies at once would only wait.
Result<Sandboxes::EntryPtr> Sandboxes::find_to_copy(const Team& team, std::string_view id) const {
    if (stopping_) return fail(ErrorCode::unavailable, "the server stops");
    GB_TRY_ASSIGN(EntryPtr entry, find(team, id));
    if (entry->record.state == killing) return no_such_sandbox(id);
    if (entry->record.state != running)
        return fail(ErrorCode::failed_precondition,
                    fmt::format("Sandbox \"{}\" is {}; resume it first", id, to_string(entry->record.state)));
    if (entry->being_copied)
        return fail(ErrorCode::failed_precondition,
                    fmt::format("Sandbox \"{}\" is being copied already; try again", id));
    return entry;
}

awaitable<Result<Snapshot>> Sandboxes::snapshot(Team team, std::string id, std::string name, PauseMode mode) {
    GB_CO_TRY_ASSIGN(EntryPtr entry, find_to_copy(team, id));
    GB_CO_TRY_ASSIGN(Templates::Draft draft, templates_.draft(team, entry->record, name));
    const std::int64_t asked_ms = monotonic_ms();
    SnapshotSpec spec{entry->record.id, draft.build.id, draft.row.id, draft.row.name, entry->record.env_vars,
                      SnapshotSpec::Keep::durable, mode};
    entry->being_copied = true;
    Status taken = co_await node_.snapshot(std::move(spec));
    entry->being_copied = false;
    if (!taken) {
        // If it ended or was paused meanwhile, that is what to say.
        if (auto still = find_to_copy(team, id); !still) co_return std::unexpected(still.error());
        co_return std::unexpected(taken.error());
    }
    Event event = checkpointed_event(entry->record, draft.build);
    auto out = co_await templates_.publish(std::move(team), std::move(draft), std::move(event));
    if (out)
        log::info(
            "snapshot taken",
            {{"sandbox", entry->record.id}, {"snapshot", out->id}, {"took_ms", monotonic_ms() - asked_ms}});
    co_return out;
}

// The network of the source as it is now: rules may have been tightened while it was copied, and forks must
// not have weaker ones.
Status Sandboxes::give_network(const Entry& source, const std::vector<EntryPtr>& forks) const {
    GB_TRY_ASSIGN(const NetworkRequest network, network_of(source.record, sealer()));
    for (const EntryPtr& fork : forks) {
        GB_TRY(put_network(fork->record, network, sealer()));
        fork->record.network_json = source.record.network_json;
    }
    return {};
}

awaitable<Result<std::vector<Result<SandboxView>>>> Sandboxes::fork(Team team, std::string id, int count,
                                                                    std::int64_t timeout_s) {
    const Plan& plan = options_.plans.of(team.plan);
    if (count < 1 || count > kMostForks)
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("count must be between 1 and {}", kMostForks));
    GB_CO_TRY(check_lifetime(plan, timeout_s));
    GB_CO_TRY_ASSIGN(EntryPtr source, find_to_copy(team, id));
    GB_CO_TRY(check_place(team.id, plan, count));
    GB_CO_TRY(check_rate(team, plan));

    const std::int64_t asked_ms = monotonic_ms();
    // Their places are theirs from now on.
    std::vector<EntryPtr> forks;
    for (int i = 0; i < count; ++i) {
        SandboxRecord record = source->record;
        record.id = sandbox_id();
        record.state = creating;
        record.run_id.clear();
        record.timeout_s = static_cast<int>(timeout_s);
        record.egress_proxy = {};  // its password is sealed for the source; see give_network()
        forks.push_back(make_entry(std::move(record)));
    }
    SnapshotSpec spec{.sandbox_id = source->record.id,
                      .build_id = random_uuid(),
                      .template_id = source->record.template_id,
                      .name = source->record.template_name,
                      .env_vars = source->record.env_vars,
                      .keep = SnapshotSpec::Keep::for_now};
    const std::string build_id = spec.build_id;
    source->being_copied = true;
    Status taken = co_await node_.snapshot(std::move(spec));
    source->being_copied = false;
    if (taken) {
        taken = give_network(*source, forks);
        if (!taken) (void)co_await node_.remove_snapshot(build_id);
    }
    if (!taken) {
        for (const EntryPtr& fork : forks) {
            (void)fork->move_to(killing);
            forget(*fork);
        }
        if (auto still = find_to_copy(team, id); !still) co_return std::unexpected(still.error());
        co_return std::unexpected(taken.error());
    }
    const std::int64_t copied_ms = monotonic_ms();
    std::vector<Result<SandboxView>> out(forks.size(), fail(ErrorCode::internal, "not started"));
    std::size_t left = forks.size();
    asio::steady_timer all_done(executor_, asio::steady_timer::time_point::max());
    for (std::size_t i = 0; i < forks.size(); ++i)
        asio::co_spawn(executor_, bring_up(forks[i], build_id),
                       [&, i](const std::exception_ptr& failure, Result<SandboxView> made) {
                           if (failure) std::rethrow_exception(failure);
                           out[i] = std::move(made);
                           if (--left == 0) all_done.cancel();
                       });
    while (left > 0) co_await all_done.async_wait(kErrorTuple);
    if (Status removed = co_await node_.remove_snapshot(build_id); !removed)
        log::warn("the copy that forks were started from is left",
                  {{"sandbox", id}, {"build", build_id}, {"error", removed.error().message}});
    log::info("sandbox forked", {{"sandbox", source->record.id},
                                 {"count", count},
                                 {"copy_ms", copied_ms - asked_ms},
                                 {"took_ms", monotonic_ms() - asked_ms}});
    co_return out;
}

}  // namespace gb
