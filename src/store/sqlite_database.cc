// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_database.h"

#include <future>

#include <fmt/format.h>

#include "base/log.h"
#include "store/sqlite_schema.h"

namespace gb {
namespace {

constexpr int kBusyMs = 60'000;  // of another's write, on a slow disk
constexpr std::size_t kChangesInLog = 500;  // some megabytes
constexpr int kFull = 13;                   // sqlite3.h, primary result codes
constexpr int kConstraint = 19;

// SQLiteCpp throws; here its exceptions become values. Messages of SQLite name columns, never their contents.
Error to_error(std::string_view what, const SQLite::Exception& e) {
    ErrorCode code = e.getErrorCode() == kFull         ? ErrorCode::no_space
                     : e.getErrorCode() == kConstraint ? ErrorCode::already_exists
                                                       : ErrorCode::internal;
    return {code, fmt::format("{}: {}", what, e.what())};
}

Status guarded(std::string_view what, const std::function<void()>& body) {
    try {
        body();
        return {};
    } catch (const SQLite::Exception& e) {
        return std::unexpected(to_error(what, e));
    } catch (const Error& e) {
        return std::unexpected(e);
    }
}

}  // namespace

SqliteDatabase::SqliteDatabase(const std::string& path)
    : writer_(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs),
      reader_(path, SQLite::OPEN_READWRITE, kBusyMs),
      checkpointer_(path, SQLite::OPEN_READWRITE, kBusyMs),
      thread_([this] { run(); }),
      checkpoint_thread_([this] { checkpoint(); }) {}

SqliteDatabase::~SqliteDatabase() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    written_.notify_one();
    thread_.join();
    checkpoint_thread_.join();
}

Status SqliteDatabase::migrate() {
    Status done;
    GB_TRY(guarded("open the store", [&] {
        done = gb::migrate(writer_.database());
        if (!done) return;
        reader_.exec("PRAGMA query_only=ON");
        writer_.exec("PRAGMA wal_autocheckpoint=0");
        checkpointer_.exec("PRAGMA wal_autocheckpoint=0");
    }));
    return done;
}

void SqliteDatabase::submit(std::string_view what, Body body, Done done) {
    {
        std::lock_guard lock(mutex_);
        queue_.push_back({std::string(what), std::move(body), std::move(done), {}});
    }
    wake_.notify_one();
}

Status SqliteDatabase::write(std::string_view what, Body body) {
    std::promise<Status> promise;
    submit(what, std::move(body), [&](Status status) { promise.set_value(std::move(status)); });
    return promise.get_future().get();
}

Status SqliteDatabase::read(std::string_view what, const Body& body) {
    std::lock_guard lock(reading_);
    return guarded(what, [&] { body(reader_); });
}

void SqliteDatabase::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        std::vector<Job> batch = std::move(queue_);
        queue_.clear();
        lock.unlock();
        run_batch(batch);
        for (Job& job : batch) job.done(std::move(job.result));
        const std::size_t count = batch.size();
        batch.clear();
        lock.lock();
        changes_in_log_ += count;
        if (changes_in_log_ >= kChangesInLog) written_.notify_one();
    }
}

void SqliteDatabase::checkpoint() {
    std::unique_lock lock(mutex_);
    for (;;) {
        written_.wait(lock, [&] { return stopping_ || changes_in_log_ >= kChangesInLog; });
        if (stopping_) return;  // the last connection to close does it
        changes_in_log_ = 0;
        lock.unlock();
        Status done =
            guarded("tidy the store", [&] { checkpointer_.exec("PRAGMA wal_checkpoint(PASSIVE)"); });
        if (!done) log::warn("the store's log was not tidied", {{"error", done.error().message}});
        lock.lock();
    }
}

void SqliteDatabase::run_batch(std::vector<Job>& batch) {
    Status all = guarded("write to the store", [&] {
        SQLite::Transaction transaction(writer_.database(), SQLite::TransactionBehavior::IMMEDIATE);
        for (Job& job : batch) {
            writer_.run("SAVEPOINT one");
            job.result = guarded(job.what, [&] { job.body(writer_); });
            if (!job.result) writer_.run("ROLLBACK TO one");
            writer_.run("RELEASE one");
        }
        transaction.commit();
    });
    if (all) return;
    for (Job& job : batch)
        if (job.result) job.result = all;
}

}  // namespace gb
