// SPDX-License-Identifier: Apache-2.0
// Sandboxes and their runs.
#include <array>
#include <utility>

#include <SQLiteCpp/VariadicBind.h>

#include "store/sqlite_store.h"

namespace gb {
namespace {

constexpr std::array<std::pair<SandboxState, const char*>, 6> kStates{{
    {SandboxState::creating, "creating"},
    {SandboxState::running, "running"},
    {SandboxState::pausing, "pausing"},
    {SandboxState::paused, "paused"},
    {SandboxState::resuming, "resuming"},
    {SandboxState::killing, "killing"},
}};

const char* to_text(SandboxState state) {
    for (const auto& [value, text] : kStates)
        if (value == state) return text;
    return "killing";
}

SandboxState to_state(const std::string& text) {
    for (const auto& [value, name] : kStates)
        if (text == name) return value;
    return SandboxState::killing;  // an unknown state is one that must not run on
}

constexpr const char* kSandboxColumns =
    "id, team_id, template_id, template_name, build_id, state, run_id, started_ms, ends_ms, timeout_s, "
    "cpu_count, "
    "memory_mib, disk_mib, secure, auto_pause, auto_pause_memory, auto_resume, paused_with_memory, "
    "public_traffic, "
    "mask_request_host, allow_internet_access, network, allow_out, deny_out, metadata, env_vars, warned_ms, "
    "header_rules, proxy_address, proxy_username, proxy_password";

void put(SqliteConnection& db, const SandboxRecord& r) {
    auto s = db.prepare(std::string("INSERT OR REPLACE INTO sandbox (") + kSandboxColumns +
                        ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    SQLite::bind(*s, r.id, r.team_id, r.template_id, r.template_name, r.build_id, to_text(r.state), r.run_id,
                 r.started_ms, r.ends_ms, r.timeout_s, r.cpu_count, r.memory_mib, r.disk_mib,
                 r.secure ? 1 : 0, r.auto_pause ? 1 : 0, r.auto_pause_memory ? 1 : 0, r.auto_resume ? 1 : 0,
                 r.paused_with_memory ? 1 : 0, r.public_traffic ? 1 : 0, r.mask_request_host);
    if (r.allow_internet_access)
        s->bind(21, *r.allow_internet_access ? 1 : 0);
    else
        s->bind(21);
    s->bind(22, r.network_json);
    s->bind(23, sqlite::to_json(r.allow_out));
    s->bind(24, sqlite::to_json(r.deny_out));
    s->bind(25, sqlite::to_json(r.metadata));
    s->bind(26, sqlite::to_json(r.env_vars));
    s->bind(27, r.warned_ms);
    s->bind(28, sqlite::to_json(r.header_rules));
    s->bind(29, r.egress_proxy.address);
    s->bind(30, r.egress_proxy.username);
    s->bind(31, r.egress_proxy.sealed_password);
    s->exec();
}

SandboxRecord read_sandbox(SQLite::Statement& q) {
    SandboxRecord r;
    r.id = q.getColumn(0).getString();
    r.team_id = q.getColumn(1).getString();
    r.template_id = q.getColumn(2).getString();
    r.template_name = q.getColumn(3).getString();
    r.build_id = q.getColumn(4).getString();
    r.state = to_state(q.getColumn(5).getString());
    r.run_id = q.getColumn(6).getString();
    r.started_ms = q.getColumn(7).getInt64();
    r.ends_ms = q.getColumn(8).getInt64();
    r.timeout_s = q.getColumn(9).getInt();
    r.cpu_count = q.getColumn(10).getInt();
    r.memory_mib = q.getColumn(11).getInt();
    r.disk_mib = q.getColumn(12).getInt();
    r.secure = q.getColumn(13).getInt() != 0;
    r.auto_pause = q.getColumn(14).getInt() != 0;
    r.auto_pause_memory = q.getColumn(15).getInt() != 0;
    r.auto_resume = q.getColumn(16).getInt() != 0;
    r.paused_with_memory = q.getColumn(17).getInt() != 0;
    r.public_traffic = q.getColumn(18).getInt() != 0;
    r.mask_request_host = q.getColumn(19).getString();
    if (!q.isColumnNull(20)) r.allow_internet_access = q.getColumn(20).getInt() != 0;
    r.network_json = q.getColumn(21).getString();
    r.allow_out = sqlite::list_of(q.getColumn(22).getString());
    r.deny_out = sqlite::list_of(q.getColumn(23).getString());
    r.metadata = sqlite::map_of(q.getColumn(24).getString());
    r.env_vars = sqlite::map_of(q.getColumn(25).getString());
    r.warned_ms = q.getColumn(26).getInt64();
    r.header_rules = sqlite::headers_of(q.getColumn(27).getString());
    r.egress_proxy = {q.getColumn(28).getString(), q.getColumn(29).getString(), q.getColumn(30).getString()};
    return r;
}

constexpr const char* kRunColumns =
    "id, sandbox_id, team_id, template_id, cpu_count, memory_mib, started_ms, seen_ms, ended_ms";

void put(SqliteConnection& db, const SandboxRun& r) {
    auto s = db.prepare(std::string("INSERT OR REPLACE INTO run (") + kRunColumns +
                        ") VALUES (?,?,?,?,?,?,?,?,?)");
    SQLite::bind(*s, r.id, r.sandbox_id, r.team_id, r.template_id, r.cpu_count, r.memory_mib, r.started_ms,
                 r.seen_ms, r.ended_ms);
    s->exec();
}

SandboxRun read_run(SQLite::Statement& q) {
    return {q.getColumn(0).getString(), q.getColumn(1).getString(), q.getColumn(2).getString(),
            q.getColumn(3).getString(), q.getColumn(4).getInt(),    q.getColumn(5).getInt(),
            q.getColumn(6).getInt64(),  q.getColumn(7).getInt64(),  q.getColumn(8).getInt64()};
}

void apply(SqliteConnection& db, const Change& change) {
    for (const SandboxRecord& record : change.put_sandboxes) put(db, record);
    for (const std::string& id : change.remove_sandboxes) {
        auto statement = db.prepare("DELETE FROM sandbox WHERE id = ?");
        statement->bind(1, id);
        statement->exec();
    }
    for (const SandboxRun& run : change.put_runs) put(db, run);
    for (const Event& event : change.events) sqlite::put(db, event);
    if (!change.logs.empty()) sqlite::put(db, change.logs);
    sqlite::put_templates(db, change);
}

}  // namespace

void SqliteStore::submit(Change change, std::function<void(Status)> done) {
    const bool tells = !change.events.empty();
    db_.submit(
        "record a sandbox", [change = std::move(change)](SqliteConnection& db) { apply(db, change); },
        [this, tells, done = std::move(done)](Status status) {
            const bool stored = status.has_value();
            done(std::move(status));
            if (tells && stored) tell_of_delivery();
        });
}

Result<std::vector<SandboxRecord>> SqliteStore::sandboxes() {
    std::vector<SandboxRecord> out;
    GB_TRY(db_.read("list the sandboxes", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kSandboxColumns + " FROM sandbox");
        while (q->executeStep()) out.push_back(read_sandbox(*q));
    }));
    return out;
}

Result<std::vector<SandboxRun>> SqliteStore::runs(std::string_view team_id, std::int64_t from_ms,
                                                  std::int64_t to_ms) {
    std::vector<SandboxRun> out;
    GB_TRY(db_.read("list the runs", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kRunColumns +
                            " FROM run WHERE (?1 = '' OR team_id = ?1) AND started_ms < ?3 AND "
                            "(ended_ms = 0 OR ended_ms > ?2) ORDER BY started_ms, id");
        SQLite::bind(*q, std::string(team_id), from_ms, to_ms);
        while (q->executeStep()) out.push_back(read_run(*q));
    }));
    return out;
}

Result<std::vector<SandboxRun>> SqliteStore::open_runs() {
    std::vector<SandboxRun> out;
    GB_TRY(db_.read("list the open runs", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kRunColumns + " FROM run WHERE ended_ms = 0");
        while (q->executeStep()) out.push_back(read_run(*q));
    }));
    return out;
}

Result<std::optional<std::string>> SqliteStore::team_of_sandbox(std::string_view sandbox_id) {
    std::optional<std::string> out;
    GB_TRY(db_.read("look up the team of a sandbox", [&](SqliteConnection& db) {
        auto q = db.prepare(
            "SELECT team_id FROM sandbox WHERE id = ?1 UNION ALL SELECT team_id FROM run WHERE sandbox_id = "
            "?1 "
            "LIMIT 1");
        q->bind(1, std::string(sandbox_id));
        if (q->executeStep()) out = q->getColumn(0).getString();
    }));
    return out;
}

Status SqliteStore::see_open_runs(std::int64_t now_ms) {
    return db_.write("note what runs", [=](SqliteConnection& db) {
        auto s = db.prepare("UPDATE run SET seen_ms = ? WHERE ended_ms = 0");
        s->bind(1, now_ms);
        s->exec();
    });
}

}  // namespace gb
