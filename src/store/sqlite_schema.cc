// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_schema.h"

#include <array>

#include <fmt/format.h>

namespace gb {
namespace {

// Each entry takes the schema one version further; entries are never changed once released.
constexpr std::array<const char*, 7> kMigrations{
    R"sql(
    CREATE TABLE team (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE,
        max_sandboxes INTEGER NOT NULL, max_lifetime_s INTEGER NOT NULL) STRICT;
    CREATE TABLE api_key (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id) ON DELETE CASCADE, name TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE, mask TEXT NOT NULL, created_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE sandbox (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id), template_id TEXT NOT NULL,
        template_name TEXT NOT NULL, build_id TEXT NOT NULL, state TEXT NOT NULL, started_ms INTEGER NOT NULL,
        ends_ms INTEGER NOT NULL, cpu_count INTEGER NOT NULL, memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,
        secure INTEGER NOT NULL, allow_internet_access INTEGER, network TEXT NOT NULL, metadata TEXT NOT NULL) STRICT;
    CREATE INDEX sandbox_team ON sandbox(team_id, started_ms);
    )sql",
    // Sandboxes of the first version did not outlive their server: their rows say nothing any more.
    R"sql(
    ALTER TABLE team ADD COLUMN plan TEXT NOT NULL DEFAULT 'pro';
    ALTER TABLE team DROP COLUMN max_sandboxes;
    ALTER TABLE team DROP COLUMN max_lifetime_s;
    DROP TABLE sandbox;
    CREATE TABLE sandbox (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id), template_id TEXT NOT NULL,
        template_name TEXT NOT NULL, build_id TEXT NOT NULL, state TEXT NOT NULL, run_id TEXT NOT NULL,
        started_ms INTEGER NOT NULL, ends_ms INTEGER NOT NULL, timeout_s INTEGER NOT NULL, cpu_count INTEGER NOT NULL,
        memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL, secure INTEGER NOT NULL, auto_pause INTEGER NOT NULL,
        auto_pause_memory INTEGER NOT NULL, auto_resume INTEGER NOT NULL, paused_with_memory INTEGER NOT NULL,
        public_traffic INTEGER NOT NULL, mask_request_host TEXT NOT NULL, allow_internet_access INTEGER,
        network TEXT NOT NULL, allow_out TEXT NOT NULL, deny_out TEXT NOT NULL, metadata TEXT NOT NULL,
        env_vars TEXT NOT NULL) STRICT;
    CREATE TABLE run (
        id TEXT PRIMARY KEY, sandbox_id TEXT NOT NULL, team_id TEXT NOT NULL, template_id TEXT NOT NULL,
        cpu_count INTEGER NOT NULL, memory_mib INTEGER NOT NULL, started_ms INTEGER NOT NULL,
        seen_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL) STRICT;
    CREATE INDEX run_team ON run(team_id, started_ms);
    CREATE INDEX run_open ON run(id) WHERE ended_ms = 0;
    CREATE TABLE event (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
        time_ms INTEGER NOT NULL, team_id TEXT NOT NULL, sandbox_id TEXT NOT NULL, run_id TEXT NOT NULL,
        template_id TEXT NOT NULL, build_id TEXT NOT NULL, data TEXT NOT NULL) STRICT;
    CREATE INDEX event_team ON event(team_id, sequence);
    CREATE INDEX event_sandbox ON event(sandbox_id, sequence);
    CREATE TABLE webhook (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id) ON DELETE CASCADE, name TEXT NOT NULL,
        url TEXT NOT NULL, secret TEXT NOT NULL, enabled INTEGER NOT NULL, events TEXT NOT NULL,
        created_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE delivery (
        id TEXT PRIMARY KEY, webhook_id TEXT NOT NULL REFERENCES webhook(id) ON DELETE CASCADE,
        event_sequence INTEGER NOT NULL REFERENCES event(sequence) ON DELETE CASCADE, attempts INTEGER NOT NULL,
        due_ms INTEGER NOT NULL) STRICT;
    CREATE INDEX delivery_due ON delivery(due_ms);
    CREATE INDEX delivery_event ON delivery(event_sequence);
    CREATE TABLE metric (
        sandbox_id TEXT NOT NULL, team_id TEXT NOT NULL, time_ms INTEGER NOT NULL, cpu_count INTEGER NOT NULL,
        cpu_used_pct REAL NOT NULL, mem_used INTEGER NOT NULL, mem_total INTEGER NOT NULL, mem_cache INTEGER NOT NULL,
        disk_used INTEGER NOT NULL, disk_total INTEGER NOT NULL,
        PRIMARY KEY (sandbox_id, time_ms)) STRICT, WITHOUT ROWID;
    CREATE TABLE log (
        sandbox_id TEXT NOT NULL, time_ms INTEGER NOT NULL, team_id TEXT NOT NULL, level INTEGER NOT NULL,
        message TEXT NOT NULL, fields TEXT NOT NULL) STRICT;
    CREATE INDEX log_sandbox ON log(sandbox_id, time_ms);
    )sql",
    // What waits for one webhook, oldest first.
    R"sql(
    CREATE INDEX delivery_webhook ON delivery(webhook_id, due_ms, event_sequence);
    )sql",
    R"sql(
    CREATE TABLE template (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id), name TEXT NOT NULL,
        created_ms INTEGER NOT NULL) STRICT;
    CREATE UNIQUE INDEX template_name ON template(team_id, name) WHERE name <> '';
    CREATE TABLE build (
        id TEXT PRIMARY KEY, template_id TEXT NOT NULL REFERENCES template(id) ON DELETE CASCADE,
        sandbox_id TEXT NOT NULL, cpu_count INTEGER NOT NULL, memory_mib INTEGER NOT NULL, disk_mib INTEGER NOT NULL,
        created_ms INTEGER NOT NULL, warned_ms INTEGER NOT NULL DEFAULT 0) STRICT;
    CREATE INDEX build_template ON build(template_id);
    CREATE TABLE tag (
        template_id TEXT NOT NULL, tag TEXT NOT NULL, build_id TEXT NOT NULL REFERENCES build(id) ON DELETE CASCADE,
        created_ms INTEGER NOT NULL, PRIMARY KEY (template_id, tag)) STRICT, WITHOUT ROWID;
    CREATE INDEX tag_build ON tag(build_id);
    )sql",
    // When its team was told that a paused sandbox will be removed.
    R"sql(
    ALTER TABLE sandbox ADD COLUMN warned_ms INTEGER NOT NULL DEFAULT 0;
    )sql",
    // Headers that are set for a sandbox, the secrets that they name, its proxy; whose a sandbox was.
    R"sql(
    ALTER TABLE sandbox ADD COLUMN header_rules TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE sandbox ADD COLUMN proxy_address TEXT NOT NULL DEFAULT '';
    ALTER TABLE sandbox ADD COLUMN proxy_username TEXT NOT NULL DEFAULT '';
    ALTER TABLE sandbox ADD COLUMN proxy_password TEXT NOT NULL DEFAULT '';
    CREATE TABLE secret (
        id TEXT PRIMARY KEY, team_id TEXT NOT NULL REFERENCES team(id) ON DELETE CASCADE, name TEXT NOT NULL,
        version INTEGER NOT NULL, metadata TEXT NOT NULL, sealed TEXT NOT NULL, created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL, UNIQUE (team_id, name)) STRICT;
    CREATE INDEX run_sandbox ON run(sandbox_id);
    )sql",
    // What became of each delivery.
    R"sql(
    ALTER TABLE delivery ADD COLUMN tried_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE delivery ADD COLUMN last_error TEXT NOT NULL DEFAULT '';
    )sql",
};

}  // namespace

Status migrate(SQLite::Database& db) {
    db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;");
    const int version = db.execAndGet("PRAGMA user_version").getInt();
    if (version > static_cast<int>(kMigrations.size()))
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("the store has schema version {}, this program knows {}: use the newer program",
                        version, kMigrations.size()));
    for (std::size_t next = static_cast<std::size_t>(version); next < kMigrations.size(); ++next) {
        SQLite::Transaction transaction(db);
        db.exec(kMigrations[next]);
        db.exec(fmt::format("PRAGMA user_version={}", next + 1));
        transaction.commit();
    }
    return {};
}

}  // namespace gb
