// SPDX-License-Identifier: Apache-2.0
// Teams and their keys.
#include <SQLiteCpp/VariadicBind.h>

#include "store/sqlite_store.h"

namespace gb {
namespace {

Team read_team(SQLite::Statement& query) {
    return {query.getColumn(0).getString(), query.getColumn(1).getString(), query.getColumn(2).getString(),
            query.getColumn(3).getString()};
}

}  // namespace

Status SqliteStore::add_team(const Team& team) {
    return db_.write("add a team", [&](SqliteConnection& db) {
        auto statement = db.prepare("INSERT INTO team (id, name, slug, plan) VALUES (?,?,?,?)");
        SQLite::bind(*statement, team.id, team.name, team.slug, team.plan);
        statement->exec();
    });
}

Status SqliteStore::update_team(const Team& team) {
    Status done = db_.write("change a team", [&](SqliteConnection& db) {
        auto statement = db.prepare("UPDATE team SET name=?, slug=?, plan=? WHERE id=?");
        SQLite::bind(*statement, team.name, team.slug, team.plan, team.id);
        if (statement->exec() == 0) throw Error(ErrorCode::not_found, "no such team");
    });
    forget_keys();
    return done;
}

Result<std::vector<Team>> SqliteStore::teams() {
    std::vector<Team> out;
    GB_TRY(db_.read("list the teams", [&](SqliteConnection& db) {
        auto query = db.prepare("SELECT id, name, slug, plan FROM team ORDER BY name");
        while (query->executeStep()) out.push_back(read_team(*query));
    }));
    return out;
}

Status SqliteStore::add_api_key(const ApiKey& key) {
    return db_.write("add an API key", [&](SqliteConnection& db) {
        auto statement = db.prepare("INSERT INTO api_key VALUES (?,?,?,?,?,?)");
        SQLite::bind(*statement, key.id, key.team_id, key.name, key.hash, key.mask, key.created_ms);
        statement->exec();
    });
}

Result<std::vector<ApiKey>> SqliteStore::api_keys(std::string_view team_id) {
    std::vector<ApiKey> out;
    GB_TRY(db_.read("list the API keys", [&](SqliteConnection& db) {
        auto q = db.prepare(
            "SELECT id, team_id, name, hash, mask, created_ms FROM api_key WHERE team_id=? "
            "ORDER BY created_ms, id");
        q->bind(1, std::string(team_id));
        while (q->executeStep())
            out.push_back({q->getColumn(0).getString(), q->getColumn(1).getString(),
                           q->getColumn(2).getString(), q->getColumn(3).getString(),
                           q->getColumn(4).getString(), q->getColumn(5).getInt64()});
    }));
    return out;
}

Status SqliteStore::remove_api_key(std::string_view team_id, std::string_view key_id) {
    Status done = db_.write("remove an API key", [&](SqliteConnection& db) {
        auto statement = db.prepare("DELETE FROM api_key WHERE team_id=? AND id=?");
        SQLite::bind(*statement, std::string(team_id), std::string(key_id));
        if (statement->exec() == 0) throw Error(ErrorCode::not_found, "no such API key");
    });
    forget_keys();
    return done;
}

void SqliteStore::forget_keys() {
    std::lock_guard lock(keys_mutex_);
    keys_.clear();
    ++keys_generation_;
}

std::optional<Team> SqliteStore::known_team_of_key(std::string_view key_hash) {
    std::lock_guard lock(keys_mutex_);
    auto found = keys_.find(std::string(key_hash));
    if (found == keys_.end()) return std::nullopt;
    return found->second;
}

Result<std::optional<Team>> SqliteStore::team_of_key(std::string_view key_hash) {
    std::uint64_t generation = 0;
    {
        std::lock_guard lock(keys_mutex_);
        generation = keys_generation_;
    }
    std::optional<Team> out;
    GB_TRY(db_.read("look up an API key", [&](SqliteConnection& db) {
        auto query = db.prepare(
            "SELECT t.id, t.name, t.slug, t.plan FROM api_key k JOIN team t ON t.id = k.team_id "
            "WHERE k.hash = ?");
        query->bind(1, std::string(key_hash));
        if (query->executeStep()) out = read_team(*query);
    }));
    std::lock_guard lock(keys_mutex_);
    // Unless something was changed since: what was read may be older than that.
    if (out && generation == keys_generation_) keys_.insert_or_assign(std::string(key_hash), *out);
    return out;
}

}  // namespace gb
