#include <fcntl.h>

#include <array>
#include <mutex>

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "store/store.h"

namespace gb {
namespace {

namespace json = boost::json;

// Each entry takes the schema one version further; entries are never changed once released.
constexpr std::array<const char*, 1> kMigrations{
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
};

constexpr std::array<std::pair<SandboxState, const char*>, 3> kStates{{
    {SandboxState::creating, "creating"},
    {SandboxState::running, "running"},
    {SandboxState::killing, "killing"},
}};

const char* to_text(SandboxState state) {
    for (const auto& [value, text] : kStates)
        if (value == state) return text;
    return "creating";
}

SandboxState to_state(const std::string& text) {
    for (const auto& [value, name] : kStates)
        if (text == name) return value;
    return SandboxState::killing;  // an unknown state is one that must not run on
}

std::string metadata_text(const std::map<std::string, std::string>& metadata) {
    json::object object;
    for (const auto& [key, value] : metadata) object[key] = value;
    return json::serialize(object);
}

std::map<std::string, std::string> parse_metadata(const std::string& text) {
    std::map<std::string, std::string> out;
    boost::system::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_object()) return out;
    for (const auto& item : value.get_object())
        if (item.value().is_string()) out.emplace(item.key(), item.value().get_string());
    return out;
}

class SqliteStore final : public Store {
  public:
    explicit SqliteStore(const std::string& path)
        : db_(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000) {}

    Status migrate() {
        return guarded("open the store", [&]() -> Status {
            db_.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;");
            int version = db_.execAndGet("PRAGMA user_version").getInt();
            if (version > static_cast<int>(kMigrations.size()))
                return fail(ErrorCode::failed_precondition,
                            fmt::format("the store has schema version {}, this program knows {}: use the newer program",
                                        version, kMigrations.size()));
            for (std::size_t next = static_cast<std::size_t>(version); next < kMigrations.size(); ++next) {
                SQLite::Transaction transaction(db_);
                db_.exec(kMigrations[next]);
                db_.exec(fmt::format("PRAGMA user_version={}", next + 1));
                transaction.commit();
            }
            return {};
        });
    }

    Status add_team(const Team& team) override {
        return guarded("add a team", [&]() -> Status {
            SQLite::Statement statement(db_, "INSERT INTO team VALUES (?,?,?,?,?)");
            SQLite::bind(statement, team.id, team.name, team.slug, team.max_sandboxes, team.max_lifetime_s);
            statement.exec();
            return {};
        });
    }

    Result<std::vector<Team>> teams() override {
        std::vector<Team> out;
        GB_TRY(guarded("list the teams", [&]() -> Status {
            SQLite::Statement query(db_, "SELECT id, name, slug, max_sandboxes, max_lifetime_s FROM team ORDER BY name");
            while (query.executeStep()) out.push_back(read_team(query));
            return {};
        }));
        return out;
    }

    Status add_api_key(const ApiKey& key) override {
        return guarded("add an API key", [&]() -> Status {
            SQLite::Statement statement(db_, "INSERT INTO api_key VALUES (?,?,?,?,?,?)");
            SQLite::bind(statement, key.id, key.team_id, key.name, key.hash, key.mask, key.created_ms);
            statement.exec();
            return {};
        });
    }

    Result<std::optional<Team>> team_of_key(std::string_view key_hash) override {
        std::optional<Team> out;
        GB_TRY(guarded("look up an API key", [&]() -> Status {
            SQLite::Statement query(db_,
                                    "SELECT t.id, t.name, t.slug, t.max_sandboxes, t.max_lifetime_s FROM api_key k "
                                    "JOIN team t ON t.id = k.team_id WHERE k.hash = ?");
            query.bind(1, std::string(key_hash));
            if (query.executeStep()) out = read_team(query);
            return {};
        }));
        return out;
    }

    Status put_sandbox(const SandboxRecord& r) override {
        return guarded("record a sandbox", [&]() -> Status {
            SQLite::Statement s(db_, "INSERT OR REPLACE INTO sandbox VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
            SQLite::bind(s, r.id, r.team_id, r.template_id, r.template_name, r.build_id, to_text(r.state), r.started_ms,
                         r.ends_ms, r.cpu_count, r.memory_mib, r.disk_mib, r.secure ? 1 : 0);
            if (r.allow_internet_access)
                s.bind(13, *r.allow_internet_access ? 1 : 0);
            else
                s.bind(13);
            s.bind(14, r.network_json);
            s.bind(15, metadata_text(r.metadata));
            s.exec();
            return {};
        });
    }

    Status remove_sandbox(std::string_view id) override {
        return guarded("remove a sandbox", [&]() -> Status {
            SQLite::Statement statement(db_, "DELETE FROM sandbox WHERE id = ?");
            statement.bind(1, std::string(id));
            statement.exec();
            return {};
        });
    }

    Result<std::vector<SandboxRecord>> sandboxes() override {
        std::vector<SandboxRecord> out;
        GB_TRY(guarded("list the sandboxes", [&]() -> Status {
            SQLite::Statement q(db_,
                                "SELECT id, team_id, template_id, template_name, build_id, state, started_ms, ends_ms, "
                                "cpu_count, memory_mib, disk_mib, secure, allow_internet_access, network, metadata "
                                "FROM sandbox");
            while (q.executeStep()) {
                SandboxRecord r;
                r.id = q.getColumn(0).getString();
                r.team_id = q.getColumn(1).getString();
                r.template_id = q.getColumn(2).getString();
                r.template_name = q.getColumn(3).getString();
                r.build_id = q.getColumn(4).getString();
                r.state = to_state(q.getColumn(5).getString());
                r.started_ms = q.getColumn(6).getInt64();
                r.ends_ms = q.getColumn(7).getInt64();
                r.cpu_count = q.getColumn(8).getInt();
                r.memory_mib = q.getColumn(9).getInt();
                r.disk_mib = q.getColumn(10).getInt();
                r.secure = q.getColumn(11).getInt() != 0;
                if (!q.isColumnNull(12)) r.allow_internet_access = q.getColumn(12).getInt() != 0;
                r.network_json = q.getColumn(13).getString();
                r.metadata = parse_metadata(q.getColumn(14).getString());
                out.push_back(std::move(r));
            }
            return {};
        }));
        return out;
    }

  private:
    static Team read_team(SQLite::Statement& query) {
        return {query.getColumn(0).getString(), query.getColumn(1).getString(), query.getColumn(2).getString(),
                query.getColumn(3).getInt(), query.getColumn(4).getInt()};
    }

    // SQLiteCpp throws; here its exceptions become values. Messages of SQLite name columns, never their contents.
    template <class F>
    Status guarded(std::string_view what, F&& body) {
        std::lock_guard lock(mutex_);
        try {
            return body();
        } catch (const SQLite::Exception& e) {
            ErrorCode code = e.getErrorCode() == SQLITE_FULL         ? ErrorCode::no_space
                             : e.getErrorCode() == SQLITE_CONSTRAINT ? ErrorCode::already_exists
                                                                     : ErrorCode::internal;
            return fail(code, fmt::format("{}: {}", what, e.what()));
        }
    }

    static constexpr int SQLITE_FULL = 13;        // sqlite3.h, primary result codes
    static constexpr int SQLITE_CONSTRAINT = 19;

    std::mutex mutex_;
    SQLite::Database db_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path) {
    // SQLite would create the file with the umask's mode; keys' hashes and metadata are nobody else's business.
    GB_TRY(open_file(path, O_RDWR | O_CREAT, 0600));
    try {
        auto store = std::make_unique<SqliteStore>(path);
        GB_TRY(store->migrate());
        return store;
    } catch (const SQLite::Exception& e) {
        return fail(ErrorCode::internal, fmt::format("open {}: {}", path, e.what()));
    }
}

}  // namespace gb
