// SPDX-License-Identifier: Apache-2.0
#include "control/sandboxes.h"

#include <algorithm>
#include <cmath>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/commit.h"
#include "control/events.h"
#include "control/sandbox_entry.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using enum SandboxState;

Sandboxes::Sandboxes(asio::any_io_executor executor, asio::thread_pool& pool, Store& store, Node& node,
                     SandboxesOptions options)
    : executor_(std::move(executor)),
      pool_(pool),
      store_(store),
      node_(node),
      options_(std::move(options)),
      templates_(executor_, pool_, store_, node_) {}

Sandboxes::~Sandboxes() {
    for (const auto& [id, entry] : entries_) entry->deadline.cancel();  // a handler that waits keeps its entry alive
}

std::string Sandboxes::canonical_id(std::string_view id) {
    return std::string(id.substr(0, id.find('-')));
}

Sandboxes::EntryPtr Sandboxes::make_entry(SandboxRecord record) {
    auto& places = places_[record.team_id];
    if (!places) places = std::make_shared<int>(0);
    auto entry = std::make_shared<Entry>(executor_, std::move(record), places);
    const std::string& id = entry->record.id;
    if (entry->record.secure) entry->access_token = to_hex(hmac_sha256(options_.seed, id));
    if (!entry->record.public_traffic) entry->traffic_token = to_hex(hmac_sha256(options_.seed, "traffic-" + id));
    entries_.emplace(id, entry);
    return entry;
}

// It is gone; who waits for it is told.
void Sandboxes::forget(Entry& entry) {
    if (takes_place(entry.record.state)) --*entry.places;
    entries_.erase(entry.record.id);
    entry.changed.cancel();
}

void Sandboxes::start_run(Entry& entry, std::int64_t now, std::int64_t ends_ms) {
    SandboxRecord& record = entry.record;
    record.run_id = random_uuid();
    record.started_ms = now;
    record.ends_ms = ends_ms;
    record.warned_ms = 0;
    entry.run = {.id = record.run_id,
                 .sandbox_id = record.id,
                 .team_id = record.team_id,
                 .template_id = record.template_id,
                 .cpu_count = record.cpu_count,
                 .memory_mib = record.memory_mib,
                 .started_ms = now,
                 .seen_ms = now};
}

Status Sandboxes::start() {
    GB_TRY(templates_.start());
    GB_TRY_ASSIGN(auto rows, store_.sandboxes());
    GB_TRY_ASSIGN(auto held, node_.held());
    GB_TRY_ASSIGN(auto runs, store_.open_runs());
    node_.on_exit([this](const std::string& id, const std::string& reason) { exited(id, reason); });
    std::unordered_map<std::string, bool> machines;
    for (const HeldSandbox& sandbox : held) machines[sandbox.id] = sandbox.running;
    std::unordered_map<std::string, SandboxRun> open;
    for (SandboxRun& run : runs) open[run.id] = std::move(run);
    for (SandboxRecord& row : rows) {
        auto machine = machines.find(row.id);
        std::optional<bool> held_running;
        if (machine != machines.end()) held_running = machine->second;
        auto run = open.find(row.run_id);
        const std::string run_id = row.run_id;
        GB_TRY(adopt_row(std::move(row), held_running, run == open.end() ? nullptr : &run->second));
        open.erase(run_id);
    }
    Change change;  // runs whose sandbox has no row any more ended when they were last seen
    for (auto& [id, run] : open) {
        run.ended_ms = std::max(run.seen_ms, run.started_ms);
        change.put_runs.push_back(run);
    }
    GB_TRY(store_.commit(std::move(change)));
    for (const auto& [id, running] : machines) {
        if (entries_.contains(id)) continue;
        // Nobody was ever told of it: its create or its kill was under way.
        log::warn("a machine that no sandbox belongs to is removed", {{"sandbox", id}});
        asio::co_spawn(executor_, node_.destroy(id), asio::detached);
    }
    restore_proxies();
    return {};
}

Status Sandboxes::adopt_row(SandboxRecord row, std::optional<bool> held_running, const SandboxRun* open_run) {
    const std::int64_t now = now_ms();
    Change change;
    SandboxRun run = open_run != nullptr ? *open_run : SandboxRun{};
    auto close_run = [&](std::int64_t at) {
        if (open_run == nullptr) return;
        run.ended_ms = std::max(at, run.started_ms);
        change.put_runs.push_back(run);
    };
    if (!held_running) {
        log::warn("a sandbox of the previous run is gone", {{"sandbox", row.id}, {"state", to_string(row.state)}});
        close_run(std::min(run.seen_ms, row.ends_ms));
        change.remove_sandboxes.push_back(row.id);
        tell(change, killed_event(row, open_run != nullptr ? &run : nullptr,
                                  "it did not outlive a restart of the machine"));
        return store_.commit(std::move(change));
    }
    const bool was_running = row.state == running;
    if (*held_running == was_running) {
        EntryPtr entry = make_entry(std::move(row));
        entry->run = std::move(run);
        log::info(was_running ? "a running sandbox is taken over" : "a paused sandbox is kept",
                  {{"sandbox", entry->record.id}});
        if (was_running) arm(entry);
        return {};
    }
    // A pause or a resume was done and not recorded: what is, counts.
    row.state = *held_running ? running : paused;
    EntryPtr entry = make_entry(std::move(row));
    entry->run = std::move(run);
    if (*held_running) {
        start_run(*entry, now, now + std::int64_t{entry->record.timeout_s} * 1000);
        tell(change, resumed_event(entry->record));
        change.put_runs.push_back(entry->run);
        arm(entry);
    } else {
        entry->record.ends_ms = now;
        entry->run.ended_ms = std::max(entry->run.seen_ms, entry->run.started_ms);
        change.put_runs.push_back(entry->run);
        tell(change, paused_event(entry->record, entry->run));
    }
    change.put_sandboxes.push_back(entry->record);
    log::info("a sandbox is taken over", {{"sandbox", entry->record.id}, {"state", to_string(entry->record.state)}});
    return store_.commit(std::move(change));
}

SandboxView Sandboxes::view(const Entry& entry) const {
    return {entry.record, entry.access_token, entry.traffic_token};
}

Result<SandboxSpec> Sandboxes::spec_of(const Entry& entry) const {
    SandboxSpec spec;
    GB_TRY_ASSIGN(spec.network, network_of(entry.record, sealer()));
    spec.id = entry.record.id;
    spec.template_id = entry.record.template_id;
    spec.env_vars = entry.record.env_vars;
    spec.access_token = entry.access_token;
    return spec;
}

Result<Sandboxes::EntryPtr> Sandboxes::find(const Team& team, std::string_view id) const {
    auto found = entries_.find(canonical_id(id));
    if (found == entries_.end() || found->second->record.team_id != team.id ||
        found->second->record.state == creating)
        return no_such_sandbox(id);
    return found->second;
}

Status Sandboxes::check_lifetime(const Plan& plan, std::int64_t timeout_s) const {
    if (timeout_s <= 0) return fail(ErrorCode::invalid_argument, "Timeout must be greater than 0");
    if (timeout_s <= plan.max_lifetime_s) return {};
    if (plan.max_lifetime_s % 3600 == 0)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("Timeout cannot be greater than {} hours", plan.max_lifetime_s / 3600));
    return fail(ErrorCode::invalid_argument,
                fmt::format("Timeout cannot be greater than {} seconds", plan.max_lifetime_s));
}

Status Sandboxes::check_place(const std::string& team_id, const Plan& plan, int count) const {
    auto places = places_.find(team_id);
    const int taken = places == places_.end() ? 0 : *places->second;
    if (taken + count <= plan.max_sandboxes) return {};
    if (taken < plan.max_sandboxes)
        return fail(ErrorCode::resource_exhausted,
                    fmt::format("{} more sandboxes would be more than the maximum number of concurrent sandboxes ({}) of "
                                "the plan '{}'; {} run now",
                                count, plan.max_sandboxes, plan.name, taken));
    return fail(ErrorCode::resource_exhausted,
                fmt::format("you have reached the maximum number of concurrent sandboxes ({}) of the plan '{}'. "
                            "Kill or pause one, or wait until one ends",
                            plan.max_sandboxes, plan.name));
}

namespace {

Status check_size(const Plan& plan, const TemplateInfo& info) {
    struct Limit {
        const char* what;
        int wanted, most;
    };
    for (const Limit& limit : {Limit{"vCPU", info.cpu_count, plan.max_cpu_count},
                               Limit{"MiB of memory", info.memory_mib, plan.max_memory_mib},
                               Limit{"MiB of disk", info.disk_mib, plan.max_disk_mib}})
        if (limit.wanted > limit.most)
            return fail(ErrorCode::permission_denied,
                        fmt::format("template '{}' has {} {}, the plan '{}' allows {}", info.name, limit.wanted,
                                    limit.what, plan.name, limit.most));
    return {};
}

}  // namespace

int Sandboxes::create_retry_after_s(const Team& team) const {
    auto found = creates_.find(team.id);
    return found == creates_.end() ? 1 : found->second.retry_after_s();
}

Status Sandboxes::check_rate(const Team& team, const Plan& plan) {
    RateLimit& rate =
        creates_.try_emplace(team.id, plan.creates_per_second, plan.max_sandboxes).first->second;
    rate.configure(plan.creates_per_second, plan.max_sandboxes);
    if (rate.take(monotonic_ms())) return {};
    return fail(ErrorCode::resource_exhausted,
                fmt::format("Rate limit exceeded: the plan '{}' allows {} new sandboxes a second", plan.name,
                            plan.creates_per_second));
}

awaitable<Result<SandboxView>> Sandboxes::create(Team team, CreateSandbox request) {
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");
    const Plan& plan = options_.plans.of(team.plan);
    GB_CO_TRY(check_lifetime(plan, request.timeout_s));
    GB_CO_TRY_ASSIGN(StartPoint from, co_await templates_.find(team, request.template_ref, Templates::Wanted::to_start));
    const TemplateInfo& info = from.info;
    GB_CO_TRY(check_size(plan, info));
    GB_CO_TRY(check_place(team.id, plan));
    GB_CO_TRY(check_rate(team, plan));

    SandboxRecord record;
    record.id = sandbox_id();
    record.team_id = team.id;
    record.template_id = info.id;
    record.template_name = info.name;
    record.build_id = info.build_id;
    record.timeout_s = request.timeout_s;
    record.cpu_count = info.cpu_count;
    record.memory_mib = info.memory_mib;
    record.disk_mib = info.disk_mib;
    record.secure = request.secure;
    record.auto_pause = request.auto_pause;
    record.auto_pause_memory = request.auto_pause_memory;
    record.auto_resume = request.auto_resume;
    record.public_traffic = request.public_traffic;
    record.mask_request_host = std::move(request.mask_request_host);
    GB_CO_TRY(put_network(record, request.network, sealer()));
    record.network_json = std::move(request.network_json);
    record.metadata = std::move(request.metadata);
    record.env_vars = std::move(request.env_vars);
    co_return co_await bring_up(make_entry(std::move(record)), std::move(from.snapshot_build));
}

awaitable<Result<SandboxView>> Sandboxes::bring_up(EntryPtr entry, std::string snapshot_build) {
    const std::string id = entry->record.id;
    const std::int64_t asked_us = monotonic_us();
    Result<SandboxSpec> spec = spec_of(*entry);
    if (spec) spec->snapshot_build = std::move(snapshot_build);
    Status made = spec ? co_await node_.create(*std::move(spec)) : Status(std::unexpected(spec.error()));
    const std::int64_t made_us = monotonic_us();
    // Meanwhile the machine may have ended, or the server may have begun to stop: the state says so.
    if (made && entry->record.state != creating)
        made = fail(ErrorCode::unavailable, "the sandbox ended while it was started");
    if (made) {
        const std::int64_t now = now_ms();
        start_run(*entry, now, now + std::int64_t{entry->record.timeout_s} * 1000);
        Change change;
        change.put_sandboxes.push_back(entry->record);
        change.put_sandboxes.back().state = running;
        change.put_runs.push_back(entry->run);
        tell(change, created_event(entry->record));
        made = co_await commit(store_, std::move(change));
        if (made && !entry->move_to(running))
            made = fail(ErrorCode::unavailable, "the sandbox ended while it was started");
    }
    if (!made) {
        (void)entry->move_to(killing);
        co_await node_.destroy(id);
        Change change;
        change.remove_sandboxes.push_back(id);
        if (!entry->run.id.empty()) {
            entry->run.ended_ms = entry->run.started_ms;  // it never served anybody
            change.put_runs.push_back(entry->run);
            tell(change, killed_event(entry->record, &entry->run, "it could not be started"));
        }
        if (Status removed = co_await commit(store_, std::move(change)); !removed)
            log::error("a failed create was not recorded", {{"sandbox", id}, {"error", removed.error().message}});
        forget(*entry);
        co_return std::unexpected(made.error());
    }
    arm(entry);
    log::info("sandbox created", {{"sandbox", id},
                                  {"team", entry->record.team_id},
                                  {"template", entry->record.template_name},
                                  {"timeout_s", entry->record.timeout_s},
                                  {"took_us", monotonic_us() - asked_us},
                                  {"engine_us", made_us - asked_us}});
    co_return view(*entry);
}

Result<SandboxView> Sandboxes::get(const Team& team, std::string_view id) const {
    GB_TRY_ASSIGN(auto entry, find(team, id));
    if (shown_as(entry->record.state) == Shown::hidden) return no_such_sandbox(id);
    return view(*entry);
}

Result<ListPage> Sandboxes::list(const Team& team, const ListQuery& query) const {
    std::vector<const SandboxRecord*> records;
    records.reserve(entries_.size());
    for (const auto& [id, entry] : entries_)
        if (entry->record.team_id == team.id) records.push_back(&entry->record);
    return list_page(std::move(records), query);
}

std::optional<std::string> Sandboxes::find_by_token(
    const std::function<bool(std::string_view token)>& accepts) const {
    for (const auto& [id, entry] : entries_)
        if (entry->record.secure && entry->record.state == running && accepts(entry->access_token)) return id;
    return std::nullopt;
}

std::optional<Destination> Sandboxes::destination(std::string_view id) const {
    auto found = entries_.find(std::string(id));
    if (found == entries_.end()) return std::nullopt;
    const Entry& entry = *found->second;
    Destination out;
    switch (entry.record.state) {
        case running:
            out.state = Destination::State::running;
            break;
        case pausing:
        case resuming:
            out.state = Destination::State::in_transition;
            break;
        case paused:
            break;
        case creating:
        case killing:
            return std::nullopt;
    }
    out.wakes = entry.record.auto_resume;
    out.access_token = entry.access_token;
    out.traffic_token = entry.traffic_token;
    out.mask_request_host = entry.record.mask_request_host;
    return out;
}

bool Sandboxes::is_running(std::string_view id) const {
    auto found = entries_.find(std::string(id));
    return found != entries_.end() && found->second->record.state == running;
}

Sandboxes::Counts Sandboxes::counts() const {
    Counts out;
    for (const auto& [id, entry] : entries_) {
        if (entry->record.state == running)
            ++out.running;
        else if (entry->record.state == paused)
            ++out.paused;
        else
            ++out.in_transition;
    }
    return out;
}

std::vector<SandboxRecord> Sandboxes::running_sandboxes() const {
    std::vector<SandboxRecord> out;
    for (const auto& [id, entry] : entries_)
        if (entry->record.state == running) out.push_back(entry->record);
    return out;
}

}  // namespace gb
