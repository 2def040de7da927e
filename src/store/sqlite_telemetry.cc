// SPDX-License-Identifier: Apache-2.0
// What sandboxes used and what they logged.
#include <array>

#include <SQLiteCpp/VariadicBind.h>

#include "store/sqlite_store.h"

namespace gb {
namespace {

constexpr const char* kMetricColumns =
    "sandbox_id, team_id, time_ms, cpu_count, cpu_used_pct, mem_used, mem_total, mem_cache, disk_used, "
    "disk_total";

MetricPoint read_metric(SQLite::Statement& q) {
    return {q.getColumn(0).getString(), q.getColumn(1).getString(), q.getColumn(2).getInt64(),
            q.getColumn(3).getInt(),    q.getColumn(4).getDouble(), q.getColumn(5).getInt64(),
            q.getColumn(6).getInt64(),  q.getColumn(7).getInt64(),  q.getColumn(8).getInt64(),
            q.getColumn(9).getInt64()};
}

constexpr std::array<const char*, 4> kLevels{"debug", "info", "warn", "error"};

int level_number(std::string_view name) {
    for (std::size_t i = 0; i < kLevels.size(); ++i)
        if (name == kLevels[i]) return static_cast<int>(i);
    return name.empty() ? 0 : 1;
}

}  // namespace

Status SqliteStore::add_metrics(const std::vector<MetricPoint>& points) {
    return db_.write("record metrics", [&](SqliteConnection& db) {
        auto s = db.prepare(std::string("INSERT OR REPLACE INTO metric (") + kMetricColumns +
                            ") VALUES (?,?,?,?,?,?,?,?,?,?)");
        for (const MetricPoint& p : points) {
            SQLite::bind(*s, p.sandbox_id, p.team_id, p.time_ms, p.cpu_count, p.cpu_used_pct, p.mem_used,
                         p.mem_total, p.mem_cache, p.disk_used, p.disk_total);
            s->exec();
            s->reset();
        }
    });
}

Result<std::vector<MetricPoint>> SqliteStore::metrics(const MetricQuery& query) {
    std::vector<MetricPoint> out;
    GB_TRY(db_.read("list metrics", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kMetricColumns +
                            " FROM metric WHERE sandbox_id = ? AND time_ms >= ? AND time_ms <= ? ORDER BY "
                            "time_ms");
        SQLite::bind(*q, query.sandbox_id, query.from_ms, query.to_ms);
        while (q->executeStep()) out.push_back(read_metric(*q));
    }));
    return out;
}

Result<std::vector<MetricPoint>> SqliteStore::latest_metrics(const std::vector<std::string>& sandbox_ids) {
    std::vector<MetricPoint> out;
    GB_TRY(db_.read("list metrics", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kMetricColumns +
                            " FROM metric WHERE sandbox_id = ? ORDER BY time_ms DESC LIMIT 1");
        for (const std::string& id : sandbox_ids) {
            q->bind(1, id);
            if (q->executeStep()) out.push_back(read_metric(*q));
            q->reset();
        }
    }));
    return out;
}

void sqlite::put(SqliteConnection& db, const std::vector<LogEntry>& entries) {
    auto s = db.prepare(
        "INSERT INTO log (sandbox_id, time_ms, team_id, level, message, fields) VALUES (?,?,?,?,?,?)");
    for (const LogEntry& e : entries) {
        SQLite::bind(*s, e.sandbox_id, e.time_ms, e.team_id, level_number(e.level), e.message,
                     sqlite::to_json(e.fields));
        s->exec();
        s->reset();
    }
}

Status SqliteStore::add_logs(const std::vector<LogEntry>& entries) {
    return db_.write("record logs", [&](SqliteConnection& db) { sqlite::put(db, entries); });
}

Result<std::vector<LogEntry>> SqliteStore::logs(const LogQuery& query) {
    std::vector<LogEntry> out;
    GB_TRY(db_.read("list logs", [&](SqliteConnection& db) {
        auto q =
            db.prepare(std::string("SELECT time_ms, sandbox_id, team_id, level, message, fields FROM log "
                                   "WHERE sandbox_id = ?1 AND time_ms >= ?2 AND time_ms <= ?3 AND level >= "
                                   "?4 AND (?5 = '' OR instr(message, ?5) > 0) ORDER BY time_ms ") +
                       (query.newest_first ? "DESC, rowid DESC" : "ASC, rowid ASC") + " LIMIT ?6");
        SQLite::bind(*q, query.sandbox_id, query.from_ms, query.to_ms, level_number(query.least_level),
                     query.search, static_cast<std::int64_t>(query.limit));
        while (q->executeStep()) {
            const auto level = static_cast<std::size_t>(q->getColumn(3).getInt());
            out.push_back({q->getColumn(0).getInt64(), q->getColumn(1).getString(),
                           q->getColumn(2).getString(), kLevels[level < kLevels.size() ? level : 1],
                           q->getColumn(4).getString(), sqlite::map_of(q->getColumn(5).getString())});
        }
    }));
    return out;
}

}  // namespace gb
