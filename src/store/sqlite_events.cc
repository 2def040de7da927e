// Events, webhooks and what is on its way to them.
#include <SQLiteCpp/VariadicBind.h>

#include "base/ids.h"
#include "store/sqlite_store.h"

namespace gb {
namespace sqlite {

void put(SQLite::Database& db, const Event& e) {
    SQLite::Statement s(db,
                        "INSERT INTO event (id, type, time_ms, team_id, sandbox_id, run_id, template_id, build_id, "
                        "data) VALUES (?,?,?,?,?,?,?,?,?)");
    SQLite::bind(s, e.id, e.type, e.time_ms, e.team_id, e.sandbox_id, e.run_id, e.template_id, e.build_id,
                 e.data_json);
    s.exec();
    const std::int64_t sequence = db.getLastInsertRowid();
    std::vector<std::string> listening;
    SQLite::Statement hooks(db,
                            "SELECT id FROM webhook WHERE team_id = ? AND enabled = 1 AND EXISTS "
                            "(SELECT 1 FROM json_each(webhook.events) WHERE json_each.value = ?)");
    SQLite::bind(hooks, e.team_id, e.type);
    while (hooks.executeStep()) listening.push_back(hooks.getColumn(0).getString());
    for (const std::string& webhook : listening) {
        SQLite::Statement d(db, "INSERT INTO delivery VALUES (?,?,?,0,?)");
        SQLite::bind(d, random_uuid(), webhook, sequence, e.time_ms);
        d.exec();
    }
}

Event read_event(SQLite::Statement& q, int at) {
    return {q.getColumn(at).getInt64(),      q.getColumn(at + 1).getString(), q.getColumn(at + 2).getString(),
            q.getColumn(at + 3).getInt64(),  q.getColumn(at + 4).getString(), q.getColumn(at + 5).getString(),
            q.getColumn(at + 6).getString(), q.getColumn(at + 7).getString(), q.getColumn(at + 8).getString(),
            q.getColumn(at + 9).getString()};
}

}  // namespace sqlite

namespace {

constexpr int kWebhookColumnCount = 8;
constexpr const char* kWebhookColumns = "w.id, w.team_id, w.name, w.url, w.secret, w.enabled, w.events, w.created_ms";

Webhook read_webhook(SQLite::Statement& q, int at) {
    return {q.getColumn(at).getString(),
            q.getColumn(at + 1).getString(),
            q.getColumn(at + 2).getString(),
            q.getColumn(at + 3).getString(),
            q.getColumn(at + 4).getString(),
            q.getColumn(at + 5).getInt() != 0,
            sqlite::list_of(q.getColumn(at + 6).getString()),
            q.getColumn(at + 7).getInt64()};
}

}  // namespace

Result<std::vector<Event>> SqliteStore::events(const EventQuery& query) {
    std::vector<Event> out;
    GB_TRY(db_.read("list the events", [&](SQLite::Database& db) {
        SQLite::Statement q(
            db, std::string("SELECT ") + sqlite::kEventColumns +
                    " FROM event e WHERE e.team_id = ?1 AND (?2 = '' OR e.sandbox_id = ?2) AND (?3 = '[]' OR "
                    "e.type IN (SELECT value FROM json_each(?3))) ORDER BY e.sequence " +
                    (query.ascending ? "ASC" : "DESC") + " LIMIT ?4 OFFSET ?5");
        SQLite::bind(q, query.team_id, query.sandbox_id, sqlite::to_json(query.types),
                     static_cast<std::int64_t>(query.limit), static_cast<std::int64_t>(query.offset));
        while (q.executeStep()) out.push_back(sqlite::read_event(q, 0));
    }));
    return out;
}

Status SqliteStore::put_webhook(const Webhook& w) {
    return db_.write("record a webhook", [&](SQLite::Database& db) {
        // No REPLACE: it would delete the row, and with it what is on its way.
        SQLite::Statement s(db,
                            "INSERT INTO webhook VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
                            "name=excluded.name, url=excluded.url, secret=excluded.secret, "
                            "enabled=excluded.enabled, events=excluded.events");
        SQLite::bind(s, w.id, w.team_id, w.name, w.url, w.secret, w.enabled ? 1 : 0, sqlite::to_json(w.events),
                     w.created_ms);
        s.exec();
    });
}

Result<std::vector<Webhook>> SqliteStore::webhooks(std::string_view team_id) {
    std::vector<Webhook> out;
    GB_TRY(db_.read("list the webhooks", [&](SQLite::Database& db) {
        SQLite::Statement q(db, std::string("SELECT ") + kWebhookColumns +
                                    " FROM webhook w WHERE w.team_id = ? ORDER BY w.created_ms, w.id");
        q.bind(1, std::string(team_id));
        while (q.executeStep()) out.push_back(read_webhook(q, 0));
    }));
    return out;
}

Status SqliteStore::remove_webhook(std::string_view team_id, std::string_view id) {
    return db_.write("remove a webhook", [&](SQLite::Database& db) {
        SQLite::Statement s(db, "DELETE FROM webhook WHERE team_id = ? AND id = ?");
        SQLite::bind(s, std::string(team_id), std::string(id));
        if (s.exec() == 0) throw Error(ErrorCode::not_found, "no such webhook");
    });
}

Result<std::vector<Delivery>> SqliteStore::due_deliveries(std::int64_t now_ms, std::size_t limit) {
    std::vector<Delivery> out;
    GB_TRY(db_.read("list the deliveries", [&](SQLite::Database& db) {
        SQLite::Statement q(db, std::string("SELECT d.id, d.attempts, ") + kWebhookColumns + ", " +
                                    sqlite::kEventColumns +
                                    " FROM delivery d JOIN webhook w ON w.id = d.webhook_id JOIN event e ON "
                                    "e.sequence = d.event_sequence WHERE d.due_ms <= ? AND w.enabled = 1 "
                                    "ORDER BY d.due_ms, e.sequence LIMIT ?");
        SQLite::bind(q, now_ms, static_cast<std::int64_t>(limit));
        while (q.executeStep())
            out.push_back({q.getColumn(0).getString(), read_webhook(q, 2),
                           sqlite::read_event(q, 2 + kWebhookColumnCount), q.getColumn(1).getInt()});
    }));
    return out;
}

Status SqliteStore::finish_delivery(std::string_view id) {
    return db_.write("finish a delivery", [&](SQLite::Database& db) {
        SQLite::Statement s(db, "DELETE FROM delivery WHERE id = ?");
        s.bind(1, std::string(id));
        s.exec();
    });
}

Status SqliteStore::postpone_delivery(std::string_view id, int attempts, std::int64_t due_ms) {
    return db_.write("postpone a delivery", [&](SQLite::Database& db) {
        SQLite::Statement s(db, "UPDATE delivery SET attempts = ?, due_ms = ? WHERE id = ?");
        SQLite::bind(s, attempts, due_ms, std::string(id));
        s.exec();
    });
}

}  // namespace gb
