// SPDX-License-Identifier: Apache-2.0
// Durable state. A change that returned success has reached the disk. Calls block (a few microseconds for a
// read, about a millisecond for a write) and may come from any thread; writes of several threads share one
// synchronisation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/records.h"

namespace gb {

// What happens together or not at all.
struct Change {
    std::vector<SandboxRecord> put_sandboxes;   // inserted, or replaced by their id
    std::vector<std::string> remove_sandboxes;  // ids; missing ones are fine
    std::vector<SandboxRun> put_runs;
    std::vector<Event> events;  // deliveries to the webhooks of their teams are made with them
    std::vector<LogEntry> logs;
    std::vector<TemplateRecord> put_templates;
    std::vector<BuildRecord> put_builds;
    std::vector<TagRecord> put_tags;                                // a tag moves to the build that it is put with
    std::vector<std::pair<std::string, std::string>> remove_tags;   // template, tag
    std::vector<std::string> remove_builds;                         // with their tags
    std::vector<std::string> remove_templates;                      // with their builds
};

struct TemplateRows {
    std::vector<TemplateRecord> templates;
    std::vector<BuildRecord> builds;
    std::vector<TagRecord> tags;
};

struct EventQuery {
    std::string team_id;
    std::string sandbox_id;          // empty: all of the team
    std::vector<std::string> types;  // empty: all
    std::size_t offset = 0;
    std::size_t limit = 10;
    bool ascending = false;
};

struct MetricQuery {
    std::string sandbox_id;
    std::int64_t from_ms = 0, to_ms = INT64_MAX;
};

struct LogQuery {
    std::string sandbox_id;
    std::int64_t from_ms = 0, to_ms = INT64_MAX;  // both included
    bool newest_first = false;
    std::size_t limit = 1000;
    std::string least_level;  // empty: debug
    std::string search;       // part of the message; empty: all
};

struct SecretQuery {
    std::string team_id;
    std::string after_id;  // those that follow it; empty: from the first
    std::size_t limit = 100;
};

struct DeliveryQuery {
    std::int64_t now_ms = 0;                // of those that are due
    std::size_t webhooks = 100;             // at most so many of them,
    std::size_t per_webhook = 100;          // and at most so many deliveries of each
    std::vector<std::string> not_webhooks;  // ids of those that are left out
    std::vector<std::string> not_teams;
};

class Store {
  public:
    virtual ~Store() = default;

    // Teams and keys. A key that was removed is unknown to the next call.
    virtual Status add_team(const Team& team) = 0;
    virtual Status update_team(const Team& team) = 0;  // not_found
    virtual Result<std::vector<Team>> teams() = 0;
    virtual Status add_api_key(const ApiKey& key) = 0;
    virtual Result<std::vector<ApiKey>> api_keys(std::string_view team_id) = 0;
    virtual Status remove_api_key(std::string_view team_id, std::string_view key_id) = 0;  // not_found
    virtual Result<std::optional<Team>> team_of_key(std::string_view key_hash) = 0;
    // The same from memory, without waiting for anything. Nothing: not known here, ask the other one.
    virtual std::optional<Team> known_team_of_key(std::string_view key_hash) = 0;

    // Sandboxes, what is metered of them, what is told about them. `done` is called on a thread of the store.
    virtual void submit(Change change, std::function<void(Status)> done) = 0;
    Status commit(Change change);  // the same, blocking
    virtual Result<std::vector<SandboxRecord>> sandboxes() = 0;

    virtual Result<TemplateRows> templates() = 0;  // of all teams

    // Runs that touch [from, to), oldest first; all teams when team_id is empty.
    virtual Result<std::vector<SandboxRun>> runs(std::string_view team_id, std::int64_t from_ms,
                                                 std::int64_t to_ms) = 0;
    virtual Result<std::vector<SandboxRun>> open_runs() = 0;
    virtual Status see_open_runs(std::int64_t now_ms) = 0;  // they are known to run still

    // The team that has or had a sandbox, as long as what it used is known. Nothing: there never was one.
    virtual Result<std::optional<std::string>> team_of_sandbox(std::string_view sandbox_id) = 0;

    virtual Result<std::vector<Event>> events(const EventQuery& query) = 0;
    virtual Status put_webhook(const Webhook& webhook) = 0;
    virtual Result<std::vector<Webhook>> webhooks(std::string_view team_id) = 0;
    virtual Status remove_webhook(std::string_view team_id, std::string_view id) = 0;  // not_found
    // Deliveries whose time has come, to webhooks that are enabled. Webhooks come in the order of the oldest
    // that waits for them, the deliveries of each oldest first: one that has a thousand waiting hides no
    // other.
    virtual Result<std::vector<Delivery>> due_deliveries(const DeliveryQuery& query) = 0;
    // When the first delivery after `now_ms` becomes due. Nothing: there is none.
    virtual Result<std::optional<std::int64_t>> next_delivery_ms(std::int64_t now_ms) = 0;
    virtual Status finish_delivery(std::string_view id) = 0;
    // After a failed attempt, which is counted: to be tried again at `due_ms`, or given up without it.
    virtual Status postpone_delivery(std::string_view id, std::int64_t tried_ms, std::optional<std::int64_t> due_ms,
                                     std::string_view error) = 0;
    // What is on its way to a webhook or was given up, the newest event first, of those at places before `before`.
    virtual Result<std::vector<DeliveryStatus>> deliveries(std::string_view webhook_id, std::size_t limit,
                                                           std::int64_t before) = 0;
    // `callback` is called on a thread of the store when there may be something new to deliver. One at a
    // time; an empty one ends it, and is not called any more when this returns.
    virtual void on_delivery(std::function<void()> callback) = 0;

    // Secrets of teams; names are unique in a team.
    virtual Status add_secret(const SecretRecord& secret) = 0;  // already_exists
    // Value, version, metadata and time of the update. aborted when it has not the version before.
    virtual Status update_secret(const SecretRecord& secret) = 0;
    virtual Status remove_secret(std::string_view team_id, std::string_view id) = 0;  // not_found
    virtual Result<std::vector<SecretRecord>> secrets(const SecretQuery& query) = 0;  // by id
    virtual Result<std::size_t> count_secrets(std::string_view team_id) = 0;
    // By id or name; an id goes first.
    virtual Result<std::optional<SecretRecord>> secret(std::string_view team_id,
                                                       std::string_view id_or_name) = 0;
    // Of the team whose sandbox this is.
    virtual Result<std::optional<SecretRecord>> secret_for(std::string_view sandbox_id,
                                                           std::string_view name) = 0;

    virtual Status add_metrics(const std::vector<MetricPoint>& points) = 0;
    virtual Result<std::vector<MetricPoint>> metrics(const MetricQuery& query) = 0;  // oldest first
    virtual Result<std::vector<MetricPoint>> latest_metrics(const std::vector<std::string>& sandbox_ids) = 0;
    virtual Status add_logs(const std::vector<LogEntry>& entries) = 0;
    virtual Result<std::vector<LogEntry>> logs(const LogQuery& query) = 0;

    // Forgets events, metrics, logs and deliveries from before a time.
    virtual Status forget_before(std::int64_t time_ms) = 0;
};

// SQLite in WAL mode with full synchronisation. Creates the file (0600) and brings its schema up to date; a
// file of a newer version of the program is refused.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path);

}  // namespace gb
