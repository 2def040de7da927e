// SPDX-License-Identifier: Apache-2.0
// One connection to an SQLite file that keeps its statements: a change of a sandbox is half a dozen of them,
// and reading their text again cost more than running them. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <SQLiteCpp/SQLiteCpp.h>

namespace gb {

class SqliteConnection {
  public:
    SqliteConnection(const std::string& path, int flags, int busy_ms) : db_(path, flags, busy_ms) {}
    SqliteConnection(const SqliteConnection&) = delete;
    SqliteConnection& operator=(const SqliteConnection&) = delete;

    struct PutBack {
        SqliteConnection* from;
        std::string text;
        void operator()(SQLite::Statement* statement) const noexcept;
    };
    // Nothing is bound, and it is at its start; it goes back when the pointer does, and must before the
    // connection.
    using Prepared = std::unique_ptr<SQLite::Statement, PutBack>;
    [[nodiscard]] Prepared prepare(std::string_view text);  // throws SQLite::Exception

    void run(std::string_view text) { prepare(text)->exec(); }  // one statement, kept
    void exec(const std::string& text) { db_.exec(text); }      // any number of statements, not kept
    [[nodiscard]] std::int64_t last_row() const { return db_.getLastInsertRowid(); }
    [[nodiscard]] SQLite::Database& database() { return db_; }

  private:
    SQLite::Database db_;
    std::unordered_map<std::string, std::unique_ptr<SQLite::Statement>>
        resting_;  // ends before the connection
};

}  // namespace gb
