// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_connection.h"

namespace gb {

SqliteConnection::Prepared SqliteConnection::prepare(std::string_view text) {
    std::string key(text);
    // One that is in use is not there: the same text asked for inside its own use gets a statement of its
    // own.
    if (auto node = resting_.extract(key)) return {node.mapped().release(), {this, std::move(key)}};
    auto made = std::make_unique<SQLite::Statement>(db_, key);
    return {made.release(), {this, std::move(key)}};
}

void SqliteConnection::PutBack::operator()(SQLite::Statement* statement) const noexcept {
    std::unique_ptr<SQLite::Statement> owned(statement);
    try {
        // A failed statement says its error again when it is reset; that error was already thrown.
        static_cast<void>(owned->tryReset());
        owned->clearBindings();
        from->resting_.insert_or_assign(text, std::move(owned));
    } catch (const std::exception&) {
        return;  // it is not kept
    }
}

}  // namespace gb
