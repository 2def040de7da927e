// SPDX-License-Identifier: Apache-2.0
// Secrets of teams.
#include <SQLiteCpp/VariadicBind.h>

#include "store/sqlite_store.h"

namespace gb {
namespace {

constexpr const char* kColumns =
    "s.id, s.team_id, s.name, s.version, s.metadata, s.sealed, s.created_ms, s.updated_ms";

SecretRecord read_secret(SQLite::Statement& q) {
    return {q.getColumn(0).getString(),
            q.getColumn(1).getString(),
            q.getColumn(2).getString(),
            q.getColumn(3).getInt64(),
            sqlite::map_of(q.getColumn(4).getString()),
            q.getColumn(5).getString(),
            q.getColumn(6).getInt64(),
            q.getColumn(7).getInt64()};
}

// The first that `which` finds, which follows "FROM secret" and has two parameters.
Result<std::optional<SecretRecord>> find_secret(SqliteDatabase& db, const char* which, std::string_view first,
                                                std::string_view second) {
    std::optional<SecretRecord> out;
    GB_TRY(db.read("look up a secret", [&](SqliteConnection& connection) {
        auto q = connection.prepare(std::string("SELECT ") + kColumns + " FROM secret " + which);
        SQLite::bind(*q, std::string(first), std::string(second));
        if (q->executeStep()) out = read_secret(*q);
    }));
    return out;
}

}  // namespace

Status SqliteStore::add_secret(const SecretRecord& r) {
    return db_.write("record a secret", [&](SqliteConnection& db) {
        auto s = db.prepare("INSERT INTO secret VALUES (?,?,?,?,?,?,?,?)");
        SQLite::bind(*s, r.id, r.team_id, r.name, r.version, sqlite::to_json(r.metadata), r.sealed,
                     r.created_ms, r.updated_ms);
        s->exec();
    });
}

Status SqliteStore::update_secret(const SecretRecord& r) {
    return db_.write("change a secret", [&](SqliteConnection& db) {
        auto s = db.prepare(
            "UPDATE secret SET version = ?1, metadata = ?2, sealed = ?3, updated_ms = ?4 WHERE id = ?5 AND "
            "team_id = ?6 AND version = ?1 - 1");
        SQLite::bind(*s, r.version, sqlite::to_json(r.metadata), r.sealed, r.updated_ms, r.id, r.team_id);
        if (s->exec() == 0) throw Error(ErrorCode::aborted, "the secret was changed or removed meanwhile");
    });
}

Status SqliteStore::remove_secret(std::string_view team_id, std::string_view id) {
    return db_.write("remove a secret", [&](SqliteConnection& db) {
        auto s = db.prepare("DELETE FROM secret WHERE team_id = ? AND id = ?");
        SQLite::bind(*s, std::string(team_id), std::string(id));
        if (s->exec() == 0) throw Error(ErrorCode::not_found, "no such secret");
    });
}

Result<std::vector<SecretRecord>> SqliteStore::secrets(const SecretQuery& query) {
    std::vector<SecretRecord> out;
    GB_TRY(db_.read("list the secrets", [&](SqliteConnection& db) {
        auto q = db.prepare(std::string("SELECT ") + kColumns +
                            " FROM secret s WHERE s.team_id = ? AND s.id > ? ORDER BY s.id LIMIT ?");
        SQLite::bind(*q, query.team_id, query.after_id, static_cast<std::int64_t>(query.limit));
        while (q->executeStep()) out.push_back(read_secret(*q));
    }));
    return out;
}

Result<std::size_t> SqliteStore::count_secrets(std::string_view team_id) {
    std::size_t out = 0;
    GB_TRY(db_.read("count the secrets", [&](SqliteConnection& db) {
        auto q = db.prepare("SELECT COUNT(*) FROM secret WHERE team_id = ?");
        q->bind(1, std::string(team_id));
        if (q->executeStep()) out = static_cast<std::size_t>(q->getColumn(0).getInt64());
    }));
    return out;
}

Result<std::optional<SecretRecord>> SqliteStore::secret(std::string_view team_id,
                                                        std::string_view id_or_name) {
    return find_secret(
        db_, "s WHERE s.team_id = ?1 AND (s.id = ?2 OR s.name = ?2) ORDER BY s.id = ?2 DESC LIMIT 1", team_id,
        id_or_name);
}

Result<std::optional<SecretRecord>> SqliteStore::secret_for(std::string_view sandbox_id,
                                                            std::string_view name) {
    return find_secret(db_, "s JOIN sandbox b ON b.team_id = s.team_id WHERE b.id = ?1 AND s.name = ?2",
                       sandbox_id, name);
}

}  // namespace gb
