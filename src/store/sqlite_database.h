// SPDX-License-Identifier: Apache-2.0
// Three connections to one SQLite file: one that writes, on a thread of its own, one that reads, and one that
// moves what was written from the log into the file, on a thread of its own too, so that no change waits for
// that. Writes that arrive while the disk is busy share the next transaction, each undone alone if it fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/sqlite_connection.h"

namespace gb {

class SqliteDatabase {
  public:
    using Body = std::function<void(SqliteConnection&)>;  // may throw SQLite::Exception or Error
    using Done = std::function<void(Status)>;

    explicit SqliteDatabase(const std::string& path);  // throws SQLite::Exception
    ~SqliteDatabase();                                 // after what was submitted is done
    SqliteDatabase(const SqliteDatabase&) = delete;
    SqliteDatabase& operator=(const SqliteDatabase&) = delete;

    Status migrate();

    // `what` names the operation in errors. `done` is called when the change is on the disk, or was refused.
    void submit(std::string_view what, Body body, Done done);
    Status write(std::string_view what, Body body);
    Status read(std::string_view what, const Body& body);

  private:
    struct Job {
        std::string what;
        Body body;
        Done done;
        Status result;
    };
    void run();
    void run_batch(std::vector<Job>& batch);
    void checkpoint();

    SqliteConnection writer_;
    SqliteConnection reader_;
    SqliteConnection checkpointer_;
    std::mutex reading_;
    std::mutex mutex_;  // of what follows
    std::condition_variable wake_, written_;
    std::vector<Job> queue_;
    std::size_t changes_in_log_ = 0;
    bool stopping_ = false;
    std::thread thread_, checkpoint_thread_;
};

}  // namespace gb
