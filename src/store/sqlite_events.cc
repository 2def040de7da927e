// SPDX-License-Identifier: Apache-2.0
// Events, webhooks and what is on its way to them.
#include <algorithm>

#include <SQLiteCpp/VariadicBind.h>

#include "base/ids.h"
#include "store/sqlite_store.h"

namespace gb {
namespace {

constexpr std::int64_t kNever = INT64_MAX;  // due_ms of a delivery that was given up

}  // namespace

namespace sqlite {

void put(SqliteConnection& db, const Event& e) {
    auto s = db.prepare(
        "INSERT INTO event (id, type, time_ms, team_id, sandbox_id, run_id, template_id, build_id, "
        "data) VALUES (?,?,?,?,?,?,?,?,?)");
    SQLite::bind(*s, e.id, e.type, e.time_ms, e.team_id, e.sandbox_id, e.run_id, e.template_id, e.build_id,
                 e.data_json);
    s->exec();
    const std::int64_t sequence = db.last_row();
    std::vector<std::string> listening;
    auto hooks = db.prepare(
        "SELECT id FROM webhook WHERE team_id = ? AND enabled = 1 AND EXISTS "
        "(SELECT 1 FROM json_each(webhook.events) WHERE json_each.value = ?)");
    SQLite::bind(*hooks, e.team_id, e.type);
    while (hooks->executeStep()) listening.push_back(hooks->getColumn(0).getString());
    for (const std::string& webhook : listening) {
        auto d = db.prepare("INSERT INTO delivery (id, webhook_id, event_sequence, attempts, due_ms) VALUES (?,?,?,0,?)");
        SQLite::bind(*d, random_uuid(), webhook, sequence, e.time_ms);
        d->exec();
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

constexpr const char* kWebhookColumns =
    "w.id, w.team_id, w.name, w.url, w.secret, w.enabled, w.events, w.created_ms";

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
    GB_TRY(db_.read("list the events", [&](SqliteConnection& db) {
        auto q = db.prepare(
            std::string("SELECT ") + sqlite::kEventColumns +
            " FROM event e WHERE e.team_id = ?1 AND (?2 = '' OR e.sandbox_id = ?2) AND (?3 = '[]' OR "
            "e.type IN (SELECT value FROM json_each(?3))) ORDER BY e.sequence " +
            (query.ascending ? "ASC" : "DESC") + " LIMIT ?4 OFFSET ?5");
        SQLite::bind(*q, query.team_id, query.sandbox_id, sqlite::to_json(query.types),
                     static_cast<std::int64_t>(query.limit), static_cast<std::int64_t>(query.offset));
        while (q->executeStep()) out.push_back(sqlite::read_event(*q, 0));
    }));
    return out;
}

Status SqliteStore::put_webhook(const Webhook& w) {
    Status done = db_.write("record a webhook", [&](SqliteConnection& db) {
        // No REPLACE: it would delete the row, and with it what is on its way.
        auto s = db.prepare(
            "INSERT INTO webhook VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
            "name=excluded.name, url=excluded.url, secret=excluded.secret, "
            "enabled=excluded.enabled, events=excluded.events");
        SQLite::bind(*s, w.id, w.team_id, w.name, w.url, w.secret, w.enabled ? 1 : 0,
                     sqlite::to_json(w.events), w.created_ms);
        s->exec();
    });
    if (done) tell_of_delivery();  // what waited while it was disabled
    return done;
}

Result<std::vector<Webhook>> SqliteStore::webhooks(std::string_view team_id) {
    std::vector<Webhook> out;
    GB_TRY(db_.read("list the webhooks", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kWebhookColumns +
                            " FROM webhook w WHERE w.team_id = ? ORDER BY w.created_ms, w.id");
        q->bind(1, std::string(team_id));
        while (q->executeStep()) out.push_back(read_webhook(*q, 0));
    }));
    return out;
}

Status SqliteStore::remove_webhook(std::string_view team_id, std::string_view id) {
    return db_.write("remove a webhook", [&](SqliteConnection& db) {
        auto s = db.prepare("DELETE FROM webhook WHERE team_id = ? AND id = ?");
        SQLite::bind(*s, std::string(team_id), std::string(id));
        if (s->exec() == 0) throw Error(ErrorCode::not_found, "no such webhook");
    });
}

Result<std::vector<Delivery>> SqliteStore::due_deliveries(const DeliveryQuery& query) {
    std::vector<Delivery> out;
    GB_TRY(db_.read("list the deliveries", [&](SqliteConnection& db) {
        const std::int64_t now = std::min(query.now_ms, kNever - 1);
        std::vector<Webhook> waiting;
        auto hooks = db.prepare(
            std::string("SELECT ") + kWebhookColumns +
            ", (SELECT MIN(d.due_ms) FROM delivery d WHERE d.webhook_id = w.id) AS oldest FROM webhook w "
            "WHERE w.enabled = 1 AND oldest <= ? AND w.id NOT IN (SELECT value FROM json_each(?)) AND "
            "w.team_id NOT IN (SELECT value FROM json_each(?)) ORDER BY oldest, w.id LIMIT ?");
        SQLite::bind(*hooks, now, sqlite::to_json(query.not_webhooks),
                     sqlite::to_json(query.not_teams), static_cast<std::int64_t>(query.webhooks));
        while (hooks->executeStep()) waiting.push_back(read_webhook(*hooks, 0));
        auto due =
            db.prepare(std::string("SELECT d.id, d.attempts, ") + sqlite::kEventColumns +
                       " FROM delivery d JOIN event e ON e.sequence = d.event_sequence WHERE "
                       "d.webhook_id = ? AND d.due_ms <= ? ORDER BY d.due_ms, d.event_sequence LIMIT ?");
        for (const Webhook& webhook : waiting) {
            SQLite::bind(*due, webhook.id, now, static_cast<std::int64_t>(query.per_webhook));
            while (due->executeStep())
                out.push_back({due->getColumn(0).getString(), webhook, sqlite::read_event(*due, 2),
                               due->getColumn(1).getInt()});
            due->reset();
        }
    }));
    return out;
}

Result<std::optional<std::int64_t>> SqliteStore::next_delivery_ms(std::int64_t now_ms) {
    std::optional<std::int64_t> out;
    GB_TRY(db_.read("look for the next delivery", [&](SqliteConnection& db) {
        auto q = db.prepare(
            "SELECT d.due_ms FROM delivery d JOIN webhook w ON w.id = d.webhook_id WHERE d.due_ms > ? AND "
            "d.due_ms < ? AND w.enabled = 1 ORDER BY d.due_ms LIMIT 1");
        SQLite::bind(*q, now_ms, kNever);
        if (q->executeStep()) out = q->getColumn(0).getInt64();
    }));
    return out;
}

void SqliteStore::on_delivery(std::function<void()> callback) {
    std::lock_guard lock(telling_);
    on_delivery_ = std::move(callback);
}

void SqliteStore::tell_of_delivery() {
    std::lock_guard lock(telling_);
    if (on_delivery_) on_delivery_();
}

Status SqliteStore::finish_delivery(std::string_view id) {
    return db_.write("finish a delivery", [&](SqliteConnection& db) {
        auto s = db.prepare("DELETE FROM delivery WHERE id = ?");
        s->bind(1, std::string(id));
        s->exec();
    });
}

Status SqliteStore::postpone_delivery(std::string_view id, std::int64_t tried_ms, std::optional<std::int64_t> due_ms,
                                      std::string_view error) {
    return db_.write("postpone a delivery", [&](SqliteConnection& db) {
        auto s = db.prepare(
            "UPDATE delivery SET attempts = attempts + 1, tried_ms = ?, due_ms = ?, last_error = ? WHERE id = ?");
        SQLite::bind(*s, tried_ms, due_ms.value_or(kNever), std::string(error), std::string(id));
        s->exec();
    });
}

Result<std::vector<DeliveryStatus>> SqliteStore::deliveries(std::string_view webhook_id, std::size_t limit,
                                                            std::int64_t before) {
    std::vector<DeliveryStatus> out;
    GB_TRY(db_.read("list the deliveries of a webhook", [&](SqliteConnection& db) {
        auto q = db.prepare(
            "SELECT d.id, e.id, e.type, e.sandbox_id, e.time_ms, d.attempts, d.tried_ms, d.due_ms, d.last_error, "
            "d.event_sequence FROM delivery d JOIN event e ON e.sequence = d.event_sequence WHERE d.webhook_id = ? AND "
            "d.event_sequence < ? ORDER BY d.event_sequence DESC LIMIT ?");
        SQLite::bind(*q, std::string(webhook_id), before, static_cast<std::int64_t>(limit));
        while (q->executeStep()) {
            DeliveryStatus row{.id = q->getColumn(0).getString(),
                               .place = q->getColumn(9).getInt64(),
                               .event_id = q->getColumn(1).getString(),
                               .event_type = q->getColumn(2).getString(),
                               .sandbox_id = q->getColumn(3).getString(),
                               .event_ms = q->getColumn(4).getInt64(),
                               .attempts = q->getColumn(5).getInt(),
                               .tried_ms = q->getColumn(6).getInt64(),
                               .last_error = q->getColumn(8).getString()};
            if (const std::int64_t due = q->getColumn(7).getInt64(); due != kNever) row.next_ms = due;
            out.push_back(std::move(row));
        }
    }));
    return out;
}

}  // namespace gb
