// SPDX-License-Identifier: Apache-2.0
// Templates of teams: their builds and their tags.
#include <SQLiteCpp/VariadicBind.h>

#include "store/sqlite_store.h"

namespace gb {

void sqlite::put_templates(SqliteConnection& db, const Change& change) {
    for (const TemplateRecord& t : change.put_templates) {
        // No REPLACE: it would delete the row, and with it its builds.
        auto s = db.prepare(
            "INSERT INTO template (id, team_id, name, created_ms) VALUES (?,?,?,?) ON CONFLICT(id) DO UPDATE "
            "SET "
            "name=excluded.name");
        SQLite::bind(*s, t.id, t.team_id, t.name, t.created_ms);
        s->exec();
    }
    for (const BuildRecord& b : change.put_builds) {
        auto s = db.prepare(
            "INSERT INTO build (id, template_id, sandbox_id, cpu_count, memory_mib, disk_mib, created_ms, "
            "warned_ms) VALUES "
            "(?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET warned_ms=excluded.warned_ms");
        SQLite::bind(*s, b.id, b.template_id, b.sandbox_id, b.cpu_count, b.memory_mib, b.disk_mib,
                     b.created_ms, b.warned_ms);
        s->exec();
    }
    for (const TagRecord& t : change.put_tags) {
        auto s = db.prepare(
            "INSERT OR REPLACE INTO tag (template_id, tag, build_id, created_ms) VALUES (?,?,?,?)");
        SQLite::bind(*s, t.template_id, t.tag, t.build_id, t.created_ms);
        s->exec();
    }
    for (const auto& [template_id, tag] : change.remove_tags) {
        auto s = db.prepare("DELETE FROM tag WHERE template_id = ? AND tag = ?");
        SQLite::bind(*s, template_id, tag);
        s->exec();
    }
    for (const std::string& id : change.remove_builds) {
        auto s = db.prepare("DELETE FROM build WHERE id = ?");
        s->bind(1, id);
        s->exec();
    }
    for (const std::string& id : change.remove_templates) {
        auto s = db.prepare("DELETE FROM template WHERE id = ?");
        s->bind(1, id);
        s->exec();
    }
}

Result<TemplateRows> SqliteStore::templates() {
    TemplateRows out;
    GB_TRY(db_.read("list the templates", [&](SqliteConnection& db) {
        auto templates = db.prepare("SELECT id, team_id, name, created_ms FROM template");
        while (templates->executeStep())
            out.templates.push_back({templates->getColumn(0).getString(), templates->getColumn(1).getString(),
                                     templates->getColumn(2).getString(),
                                     templates->getColumn(3).getInt64()});
        auto builds = db.prepare(
            "SELECT id, template_id, sandbox_id, cpu_count, memory_mib, disk_mib, created_ms, warned_ms FROM "
            "build "
            "ORDER BY created_ms");
        while (builds->executeStep())
            out.builds.push_back({builds->getColumn(0).getString(), builds->getColumn(1).getString(),
                                  builds->getColumn(2).getString(), builds->getColumn(3).getInt(),
                                  builds->getColumn(4).getInt(), builds->getColumn(5).getInt(),
                                  builds->getColumn(6).getInt64(), builds->getColumn(7).getInt64()});
        auto tags = db.prepare("SELECT template_id, tag, build_id, created_ms FROM tag");
        while (tags->executeStep())
            out.tags.push_back({tags->getColumn(0).getString(), tags->getColumn(1).getString(),
                                tags->getColumn(2).getString(), tags->getColumn(3).getInt64()});
    }));
    return out;
}

}  // namespace gb
