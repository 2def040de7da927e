#include "control/sandboxes.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/lifecycle.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;

struct Sandboxes::Entry {
    explicit Entry(const asio::any_io_executor& executor) : deadline(executor) {}
    SandboxRecord record;
    asio::steady_timer deadline;

    [[nodiscard]] bool move_to(SandboxState next) {
        if (!may_move(record.state, next)) return false;
        record.state = next;
        return true;
    }
};

Sandboxes::Sandboxes(asio::any_io_executor executor, asio::thread_pool& pool, Store& store, Node& node,
                     std::string seed)
    : executor_(std::move(executor)), pool_(pool), store_(store), node_(node), seed_(std::move(seed)) {}

Sandboxes::~Sandboxes() = default;

Status Sandboxes::start() {
    GB_TRY_ASSIGN(auto rows, store_.sandboxes());
    for (const SandboxRecord& row : rows) {
        log::warn("a sandbox of the previous run is gone",
                  {{"sandbox", row.id}, {"state", to_string(row.state)}});
        GB_TRY(store_.remove_sandbox(row.id));
    }
    node_.on_exit([this](const std::string& id, const std::string& reason) { exited(id, reason); });
    return {};
}

std::string Sandboxes::canonical_id(std::string_view id) {
    return std::string(id.substr(0, id.find('-')));
}

SandboxView Sandboxes::view(const Entry& entry) const {
    return {entry.record, entry.record.secure ? to_hex(hmac_sha256(seed_, entry.record.id)) : std::string()};
}

Result<std::shared_ptr<Sandboxes::Entry>> Sandboxes::find(const Team& team, std::string_view id) const {
    auto found = entries_.find(canonical_id(id));
    if (found == entries_.end() || found->second->record.team_id != team.id ||
        found->second->record.state != SandboxState::running)
        return fail(ErrorCode::not_found,
                    fmt::format("Sandbox \"{}\" doesn't exist or you don't have access to it", id));
    return found->second;
}

Result<TemplateInfo> Sandboxes::resolve(std::string_view template_ref) {
    std::string_view name = template_ref;
    std::string_view tag = "default";
    if (std::size_t colon = name.find(':'); colon != std::string_view::npos) {
        tag = name.substr(colon + 1);
        name = name.substr(0, colon);
    }
    GB_TRY_ASSIGN(auto templates, node_.templates());
    for (TemplateInfo& info : templates) {
        if (info.id != name && info.name != name) continue;
        if (tag != "default")
            return fail(ErrorCode::not_found, fmt::format("template '{}' has no tag '{}'", name, tag));
        return std::move(info);
    }
    return fail(ErrorCode::not_found, fmt::format("template '{}' not found", template_ref));
}

awaitable<Status> Sandboxes::save(SandboxRecord record) {
    co_return co_await offload(pool_, [this, &record] { return store_.put_sandbox(record); });
}

awaitable<Result<SandboxView>> Sandboxes::create(Team team, CreateSandbox request) {
    if (stopping_) co_return fail(ErrorCode::unavailable, "the server stops");
    if (request.timeout_s <= 0) co_return fail(ErrorCode::invalid_argument, "Timeout must be greater than 0");
    if (request.timeout_s > team.max_lifetime_s)
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("Timeout cannot be greater than {} hours", team.max_lifetime_s / 3600));
    GB_CO_TRY_ASSIGN(TemplateInfo info,
                     co_await offload(pool_, [&] { return resolve(request.template_ref); }));
    auto running = std::ranges::count_if(
        entries_, [&](const auto& item) { return item.second->record.team_id == team.id; });
    if (running >= team.max_sandboxes)
        co_return fail(
            ErrorCode::resource_exhausted,
            fmt::format("you have reached the maximum number of concurrent sandboxes ({}). Kill one, or "
                        "wait until one ends",
                        team.max_sandboxes));

    const std::int64_t asked_ms = monotonic_ms();
    auto entry = std::make_shared<Entry>(executor_);
    SandboxRecord& record = entry->record;
    record.id = sandbox_id();
    record.team_id = team.id;
    record.template_id = info.id;
    record.template_name = info.name;
    record.build_id = info.build_id;
    record.cpu_count = info.cpu_count;
    record.memory_mib = info.memory_mib;
    record.disk_mib = info.disk_mib;
    record.secure = request.secure;
    record.allow_internet_access = request.network.allow_internet_access;
    record.network_json = std::move(request.network_json);
    record.metadata = std::move(request.metadata);
    record.started_ms = now_ms();
    record.ends_ms = record.started_ms + std::int64_t{request.timeout_s} * 1000;
    entries_.emplace(record.id, entry);

    SandboxSpec spec;
    spec.id = record.id;
    spec.template_id = info.id;
    spec.env_vars = std::move(request.env_vars);
    spec.access_token = view(*entry).access_token;
    spec.network = std::move(request.network);
    Status made = co_await node_.create(std::move(spec));
    // Meanwhile the machine may have ended, or the server may have begun to stop: the state says so.
    if (made && !entry->move_to(SandboxState::running))
        made = fail(ErrorCode::unavailable, "the sandbox ended while it was started");
    if (made) {
        record.started_ms = now_ms();
        record.ends_ms = record.started_ms + std::int64_t{request.timeout_s} * 1000;
        made = co_await save(record);
        if (made && record.state != SandboxState::running)
            co_return fail(ErrorCode::unavailable,
                           "the sandbox ended while it was started");  // end() cleans up
    }
    if (!made) {
        (void)entry->move_to(SandboxState::killing);
        co_await node_.destroy(record.id);
        co_await offload(pool_, [&] { return store_.remove_sandbox(record.id); });
        entries_.erase(record.id);
        co_return std::unexpected(made.error());
    }
    arm(entry);
    log::info("sandbox created", {{"sandbox", record.id},
                                  {"template", info.name},
                                  {"timeout_s", request.timeout_s},
                                  {"took_ms", monotonic_ms() - asked_ms}});
    co_return view(*entry);
}

Result<SandboxView> Sandboxes::get(const Team& team, std::string_view id) {
    GB_TRY_ASSIGN(auto entry, find(team, id));
    return view(*entry);
}

Result<ListPage> Sandboxes::list(const Team& team, const ListQuery& query) {
    std::vector<SandboxRecord> records;
    for (const auto& [id, entry] : entries_)
        if (entry->record.team_id == team.id) records.push_back(entry->record);
    return list_page(std::move(records), query);
}

awaitable<Status> Sandboxes::move_end(std::shared_ptr<Entry> entry, std::int64_t ends_ms, Move move) {
    SandboxRecord changed = entry->record;
    changed.ends_ms = ends_ms;
    GB_CO_TRY(co_await save(std::move(changed)));
    if (entry->record.state != SandboxState::running)
        co_return fail(
            ErrorCode::not_found,
            fmt::format("Sandbox \"{}\" doesn't exist or you don't have access to it", entry->record.id));
    // Another call may have moved it further while this one was saved.
    if (move == Move::only_later && ends_ms <= entry->record.ends_ms) co_return co_await save(entry->record);
    entry->record.ends_ms = ends_ms;
    arm(entry);
    co_return Status{};
}

awaitable<Result<SandboxView>> Sandboxes::connect(Team team, std::string id, int timeout_s) {
    if (timeout_s <= 0) co_return fail(ErrorCode::invalid_argument, "Timeout must be greater than 0");
    if (timeout_s > team.max_lifetime_s)
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("Timeout cannot be greater than {} hours", team.max_lifetime_s / 3600));
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    std::int64_t wanted = std::min(now_ms() + std::int64_t{timeout_s} * 1000,
                                   entry->record.started_ms + std::int64_t{team.max_lifetime_s} * 1000);
    if (wanted > entry->record.ends_ms) GB_CO_TRY(co_await move_end(entry, wanted, Move::only_later));
    co_return view(*entry);
}

awaitable<Status> Sandboxes::set_timeout(Team team, std::string id, std::int64_t timeout_s) {
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    std::int64_t wanted = now_ms() + std::max<std::int64_t>(timeout_s, 0) * 1000;
    std::int64_t longest = entry->record.started_ms + std::int64_t{team.max_lifetime_s} * 1000;
    if (timeout_s > team.max_lifetime_s)
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("Max instance length exceeded: at most {} hours from the start",
                                   team.max_lifetime_s / 3600));
    co_return co_await move_end(entry, std::min(wanted, longest), Move::both_ways);
}

awaitable<Status> Sandboxes::kill(Team team, std::string id) {
    GB_CO_TRY_ASSIGN(auto entry, find(team, id));
    co_return co_await end(entry, "killed by a request");
}

awaitable<void> Sandboxes::kill_all() {
    stopping_ = true;
    std::vector<std::shared_ptr<Entry>> all;
    for (const auto& [id, entry] : entries_) all.push_back(entry);
    for (const auto& entry : all) {
        if (entry->record.state == SandboxState::creating)
            (void)entry->move_to(SandboxState::killing);  // its create() gives up and cleans up
        else
            asio::co_spawn(executor_, end(entry, "the server stops"), asio::detached);
    }
    asio::steady_timer pause(executor_);
    while (!entries_.empty()) {
        pause.expires_after(std::chrono::milliseconds(20));
        co_await pause.async_wait(asio::use_awaitable);
    }
}

awaitable<Status> Sandboxes::end(std::shared_ptr<Entry> entry, std::string reason) {
    const std::string id = entry->record.id;
    if (!entry->move_to(SandboxState::killing)) co_return Status{};
    entry->deadline.cancel();
    if (on_gone_) on_gone_(id);
    Status destroyed = co_await node_.destroy(id);
    Status removed = co_await offload(pool_, [&] { return store_.remove_sandbox(id); });
    entries_.erase(id);
    if (!destroyed) {
        log::error("a sandbox could not be removed whole",
                   {{"sandbox", id}, {"error", destroyed.error().message}});
        co_return destroyed;
    }
    log::info("sandbox ended", {{"sandbox", id}, {"reason", reason}});
    co_return removed;
}

void Sandboxes::arm(const std::shared_ptr<Entry>& entry) {
    std::int64_t left = std::max<std::int64_t>(0, entry->record.ends_ms - now_ms());
    entry->deadline.expires_after(std::chrono::milliseconds(left));
    entry->deadline.async_wait([this, entry](const boost::system::error_code& ec) {
        if (ec || entry->record.state != SandboxState::running) return;
        // The timer follows the monotonic clock, the deadline the wall clock: look again after a jump.
        if (entry->record.ends_ms > now_ms()) return arm(entry);
        asio::co_spawn(executor_, end(entry, "its lifetime ended"), asio::detached);
    });
}

void Sandboxes::exited(const std::string& id, const std::string& reason) {
    auto found = entries_.find(id);
    if (found == entries_.end()) return;
    std::shared_ptr<Entry> entry = found->second;
    log::warn("a sandbox ended by itself", {{"sandbox", id}, {"reason", reason}});
    if (entry->record.state == SandboxState::creating) {
        (void)entry->move_to(SandboxState::killing);  // create() notices and cleans up
        return;
    }
    asio::co_spawn(executor_, end(entry, reason), asio::detached);
}

std::optional<std::string> Sandboxes::find_by_token(
    const std::function<bool(std::string_view token)>& accepts) const {
    for (const auto& [id, entry] : entries_)
        if (entry->record.secure && entry->record.state == SandboxState::running &&
            accepts(view(*entry).access_token))
            return id;
    return std::nullopt;
}

bool Sandboxes::is_running(std::string_view id) const {
    auto found = entries_.find(std::string(id));
    return found != entries_.end() && found->second->record.state == SandboxState::running;
}

}  // namespace gb
