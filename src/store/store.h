// Durable state: teams, keys, sandboxes. A call that returned success has reached the disk. Calls block (about a
// millisecond for a write) and may come from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/records.h"

namespace gb {

class Store {
  public:
    virtual ~Store() = default;

    virtual Status add_team(const Team& team) = 0;
    virtual Result<std::vector<Team>> teams() = 0;

    virtual Status add_api_key(const ApiKey& key) = 0;
    virtual Result<std::optional<Team>> team_of_key(std::string_view key_hash) = 0;

    // Inserts or replaces the row of that id.
    virtual Status put_sandbox(const SandboxRecord& record) = 0;
    virtual Status remove_sandbox(std::string_view id) = 0;  // missing is success
    virtual Result<std::vector<SandboxRecord>> sandboxes() = 0;
};

// SQLite in WAL mode with full synchronisation. Creates the file (0600) and brings its schema up to date; a file of a
// newer version of the program is refused.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path);

}  // namespace gb
