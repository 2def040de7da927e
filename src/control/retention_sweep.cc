// SPDX-License-Identifier: Apache-2.0
// Warns of paused sandboxes and snapshots that will be removed, and removes them.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/commit.h"
#include "control/events.h"
#include "control/sandbox_entry.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using enum SandboxState;

awaitable<void> Sandboxes::apply_retention(std::int64_t now) {
    const Retention& retention = options_.retention;
    std::vector<EntryPtr> due;
    for (const auto& [id, entry] : entries_)
        if (entry->record.state == paused && keeping_of(entry->record, retention, now) != Keeping::keep)
            due.push_back(entry);
    for (const EntryPtr& entry : due) {
        if (stopping_) co_return;
        // Others were acted on meanwhile: this one may have been resumed, paused anew or killed.
        if (entry->record.state != paused) continue;
        switch (keeping_of(entry->record, retention, now)) {
            case Keeping::keep:
                break;
            case Keeping::warn:
                co_await warn_of_removal(entry, now);
                break;
            case Keeping::remove: {
                std::string reason = fmt::format("it was paused for longer than this server keeps it ({})",
                                                 duration_text(retention.paused_ms));
                if (Status ended = co_await end(entry, std::move(reason)); !ended)
                    log::error("a paused sandbox was not removed",
                               {{"sandbox", entry->record.id}, {"error", ended.error().message}});
                break;
            }
        }
    }
    if (!stopping_)
        co_await templates_.apply_retention(retention, now,
                                            [this](const std::string& build_id) { return uses_build(build_id); });
}

awaitable<void> Templates::apply_retention(Retention retention, std::int64_t now, InUse in_use) {
    std::vector<std::string> ids;
    for (const auto& [id, build] : builds_) ids.push_back(id);
    for (const std::string& id : ids) {
        auto found = builds_.find(id);
        if (found == builds_.end() || in_use(id)) continue;
        BuildRecord& build = found->second;
        const Keeping keeping = keeping_of(build, retention, now);
        if (keeping == Keeping::remove) {
            log::info("a snapshot is removed, its time is over", {{"build", id}, {"template", build.template_id}});
            if (Status removed = co_await drop({id}, {}); !removed)
                log::error("a snapshot was not removed whole", {{"build", id}, {"error", removed.error().message}});
        }
        if (keeping != Keeping::warn) continue;
        const std::int64_t remove_ms = removal_ms(build, retention, now);
        build.warned_ms = now;
        Change change;
        change.put_builds.push_back(build);
        tell(change, snapshot_expiring_event(rows_.at(build.template_id).team_id, build, remove_ms));
        Status told = co_await commit(store_, std::move(change));
        if (told) {
            log::warn("a snapshot will be removed", {{"build", id}, {"remove_at", rfc3339(remove_ms)}});
        } else {
            log::error("a team was not told of a removal", {{"build", id}, {"error", told.error().message}});
            if (auto again = builds_.find(id); again != builds_.end()) again->second.warned_ms = 0;
        }
    }
}

// In memory first: whoever kills it while this is written writes a later row.
awaitable<void> Sandboxes::warn_of_removal(EntryPtr entry, std::int64_t now) {
    const Turn turn = co_await take_turn(entry);
    SandboxRecord& record = entry->record;
    if (record.state != paused || keeping_of(record, options_.retention, now) != Keeping::warn) co_return;
    const std::int64_t remove_ms = removal_ms(record, options_.retention, now);
    record.warned_ms = now;
    Change change;
    change.put_sandboxes.push_back(record);
    tell(change, expiring_event(record, remove_ms));
    const std::string id = record.id;
    if (Status told = co_await commit(store_, std::move(change)); !told) {
        log::error("a team was not told of a removal", {{"sandbox", id}, {"error", told.error().message}});
        if (record.warned_ms == now)
            record.warned_ms = 0;  // so that it is tried again, before anything is removed
        co_return;
    }
    log::warn("a paused sandbox will be removed", {{"sandbox", id}, {"remove_at", rfc3339(remove_ms)}});
}

}  // namespace gb
