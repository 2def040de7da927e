// SPDX-License-Identifier: Apache-2.0
// The store on SQLite; its methods are in one file for each kind of row.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/sqlite_database.h"
#include "store/store.h"

namespace gb {

class SqliteStore final : public Store {
  public:
    explicit SqliteStore(const std::string& path) : db_(path) {}
    Status migrate() { return db_.migrate(); }

    Status add_team(const Team& team) override;
    Status update_team(const Team& team) override;
    Result<std::vector<Team>> teams() override;
    Status add_api_key(const ApiKey& key) override;
    Result<std::vector<ApiKey>> api_keys(std::string_view team_id) override;
    Status remove_api_key(std::string_view team_id, std::string_view key_id) override;
    Result<std::optional<Team>> team_of_key(std::string_view key_hash) override;
    std::optional<Team> known_team_of_key(std::string_view key_hash) override;

    void submit(Change change, std::function<void(Status)> done) override;
    Result<std::vector<SandboxRecord>> sandboxes() override;
    Result<TemplateRows> templates() override;
    Result<std::vector<SandboxRun>> runs(std::string_view team_id, std::int64_t from_ms,
                                         std::int64_t to_ms) override;
    Result<std::vector<SandboxRun>> open_runs() override;
    Status see_open_runs(std::int64_t now_ms) override;

    Result<std::optional<std::string>> team_of_sandbox(std::string_view sandbox_id) override;

    Result<std::vector<Event>> events(const EventQuery& query) override;
    Status put_webhook(const Webhook& webhook) override;
    Result<std::vector<Webhook>> webhooks(std::string_view team_id) override;
    Status remove_webhook(std::string_view team_id, std::string_view id) override;
    Result<std::vector<Delivery>> due_deliveries(const DeliveryQuery& query) override;
    Result<std::optional<std::int64_t>> next_delivery_ms(std::int64_t now_ms) override;
    Status finish_delivery(std::string_view id) override;
    Status postpone_delivery(std::string_view id, std::int64_t tried_ms, std::optional<std::int64_t> due_ms,
                             std::string_view error) override;
    Result<std::vector<DeliveryStatus>> deliveries(std::string_view webhook_id, std::size_t limit,
                                                   std::int64_t before) override;
    void on_delivery(std::function<void()> callback) override;

    Status add_secret(const SecretRecord& secret) override;
    Status update_secret(const SecretRecord& secret) override;
    Status remove_secret(std::string_view team_id, std::string_view id) override;
    Result<std::vector<SecretRecord>> secrets(const SecretQuery& query) override;
    Result<std::size_t> count_secrets(std::string_view team_id) override;
    Result<std::optional<SecretRecord>> secret(std::string_view team_id,
                                               std::string_view id_or_name) override;
    Result<std::optional<SecretRecord>> secret_for(std::string_view sandbox_id,
                                                   std::string_view name) override;

    Status add_metrics(const std::vector<MetricPoint>& points) override;
    Result<std::vector<MetricPoint>> metrics(const MetricQuery& query) override;
    Result<std::vector<MetricPoint>> latest_metrics(const std::vector<std::string>& sandbox_ids) override;
    Status add_logs(const std::vector<LogEntry>& entries) override;
    Result<std::vector<LogEntry>> logs(const LogQuery& query) override;

    Status forget_before(std::int64_t time_ms) override;

  private:
    void tell_of_delivery();
    void forget_keys();

    // Keys that were looked up. Only this object changes keys, and forgets all of these when it has.
    std::mutex keys_mutex_;
    std::unordered_map<std::string, Team> keys_;
    std::uint64_t keys_generation_ = 0;
    std::mutex telling_;
    std::function<void()> on_delivery_;
    SqliteDatabase db_;  // last: its thread ends before what it calls goes away
};

namespace sqlite {

// Maps and lists are kept as JSON text. What cannot be read as such is empty.
std::string to_json(const std::map<std::string, std::string>& map);
std::string to_json(const std::vector<std::string>& list);
std::string to_json(const std::vector<HeaderRow>& rows);
std::map<std::string, std::string> map_of(const std::string& json);
std::vector<std::string> list_of(const std::string& json);
std::vector<HeaderRow> headers_of(const std::string& json);

void put_templates(SqliteConnection& db, const Change& change);  // what of it is about them
void put(SqliteConnection& db, const Event& event);
void put(SqliteConnection& db, const std::vector<LogEntry>& entries);
Event read_event(SQLite::Statement& query, int first_column);  // columns as in kEventColumns
inline constexpr const char* kEventColumns =
    "e.sequence, e.id, e.type, e.time_ms, e.team_id, e.sandbox_id, e.run_id, e.template_id, e.build_id, "
    "e.data";

}  // namespace sqlite
}  // namespace gb
