// SPDX-License-Identifier: Apache-2.0
// Replaces the network of sandboxes, running or paused.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error_tuple.h"
#include "base/log.h"
#include "control/commit.h"
#include "control/events.h"
#include "control/sandbox_entry.h"
#include "control/sandbox_network.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using enum SandboxState;

awaitable<Sandboxes::Turn> Sandboxes::take_turn(EntryPtr entry) {
    const std::uint64_t ticket = entry->next_ticket++;
    while (entry->turn != ticket) co_await entry->changed.async_wait(kErrorTuple);
    co_return Turn(entry);
}

awaitable<Status> Sandboxes::set_network(Team team, std::string id, NetworkUpdate update) {
    GB_CO_TRY_ASSIGN(const EntryPtr entry, find(team, id));
    const Turn turn = co_await take_turn(entry);
    // Who waits for the turn cannot begin a transition; one that is under way needs no turn to end.
    while (entry->record.state != killing && is_transition(entry->record.state)) co_await settle(entry);
    if (entry->record.state == killing) co_return no_such_sandbox(id);
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");

    SandboxRecord next = entry->record;
    GB_CO_TRY(put_network(next, update.network, sealer()));
    next.network_json = with_egress(next.network_json, update.egress_json);
    const bool runs = next.state == running;
    const std::string& own_id = next.id;
    if (runs) {
        Status applied = co_await node_.set_network(own_id, update.network);
        if (entry->record.state != running) co_return no_such_sandbox(id);
        if (!applied) co_return applied;
    }
    Change change;
    change.put_sandboxes.push_back(next);
    tell(change, network_event(next));
    Status stored = co_await commit(store_, std::move(change));
    if (!stored) {
        log::error("a network was not recorded", {{"sandbox", own_id}, {"error", stored.error().message}});
        if (runs && entry->record.state == running) co_await put_back_network(entry);
        co_return stored;
    }
    copy_network(next, entry->record);
    log::info("network replaced", {{"sandbox", own_id}, {"state", to_string(entry->record.state)}});
    co_return Status{};
}

// The machine is to have what the row says.
awaitable<void> Sandboxes::put_back_network(EntryPtr entry) {
    const auto network = network_of(entry->record, sealer());
    Status done = network ? co_await node_.set_network(entry->record.id, *network)
                          : Status(std::unexpected(network.error()));
    if (!done && entry->record.state == running)
        log::error("a network is not as it was recorded",
                   {{"sandbox", entry->record.id}, {"error", done.error().message}});
}

// The record of a machine does not hold the password of its proxy.
void Sandboxes::restore_proxies() {
    for (const auto& [id, entry] : entries_)
        if (entry->record.state == running && !entry->record.egress_proxy.sealed_password.empty())
            asio::co_spawn(
                executor_,
                [](Sandboxes& self, EntryPtr own) -> awaitable<void> {
                    const Turn turn = co_await self.take_turn(own);
                    if (own->record.state == running) co_await self.put_back_network(own);
                }(*this, entry),
                asio::detached);
}

}  // namespace gb
