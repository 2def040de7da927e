// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <atomic>
#include <thread>

#include <sys/stat.h>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

// Takes a file of this version to the fifth.
constexpr const char* kBackToFifth =
    "DROP TABLE secret; DROP INDEX run_sandbox; ALTER TABLE sandbox DROP COLUMN header_rules; "
    "ALTER TABLE sandbox DROP COLUMN proxy_address; ALTER TABLE sandbox DROP COLUMN proxy_username; "
    "ALTER TABLE sandbox DROP COLUMN proxy_password; ALTER TABLE delivery DROP COLUMN tried_ms; "
    "ALTER TABLE delivery DROP COLUMN last_error; PRAGMA user_version=5;";

class StoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        open();
        ASSERT_TRUE(store_->add_team(team_));
    }
    void TearDown() override {
        store_.reset();
        ASSERT_TRUE(remove_tree(dir_));
    }
    void open() {
        store_.reset();
        auto store = open_sqlite_store(dir_ / "db");
        ASSERT_TRUE(store) << store.error().message;
        store_ = *std::move(store);
    }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-store-" + random_id(10));
    std::unique_ptr<Store> store_;
    Team team_{"t1", "Team", "team", "pro"};
};

TEST_F(StoreTest, TemplatesTheirBuildsAndTheirTags) {
    Change change;
    change.put_templates = {{"t", "t1", "name", 1}, {"u", "t1", "", 1}, {"v", "t1", "", 1}};
    change.put_builds = {{"b1", "t", "i1", 1, 512, 4096, 5}, {"b2", "t", "i2", 2, 1024, 4096, 6}, {"b3", "u", "i1", 1, 512, 1, 7}};
    change.put_tags = {{"t", "default", "b1", 5}, {"t", "v1", "b1", 5}, {"u", "default", "b3", 7}};
    ASSERT_TRUE(store_->commit(change));
    change = {};
    change.put_tags = {{"t", "default", "b2", 6}};
    ASSERT_TRUE(store_->commit(change));
    open();
    auto rows = store_->templates();
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->templates.size(), 3U);
    ASSERT_EQ(rows->builds.size(), 3U);
    EXPECT_EQ(rows->builds[1].memory_mib, 1024);
    EXPECT_EQ(rows->builds[1].sandbox_id, "i2");
    ASSERT_EQ(rows->tags.size(), 3U);
    EXPECT_EQ(rows->tags[0].build_id, "b2");
    EXPECT_EQ(rows->tags[0].created_ms, 6);

    change = {};
    change.put_builds = {rows->builds[1]};
    change.put_builds[0].warned_ms = 77;
    ASSERT_TRUE(store_->commit(change));
    EXPECT_EQ(store_->templates()->builds[1].warned_ms, 77);
    EXPECT_EQ(store_->templates()->tags.size(), 3U) << "it is the same row";

    change = {};
    change.put_templates = {{"w", "t1", "name", 1}};
    EXPECT_EQ(store_->commit(change).error().code, ErrorCode::already_exists) << "one team, one name";
    change = {};
    change.remove_builds = {"b1"};
    change.remove_tags = {{"u", "default"}};
    ASSERT_TRUE(store_->commit(change));
    EXPECT_EQ(store_->templates()->tags.size(), 1U) << "tags go with their build";
    change = {};
    change.remove_templates = {"t", "u", "none"};
    ASSERT_TRUE(store_->commit(change));
    EXPECT_TRUE(store_->templates()->builds.empty());
    EXPECT_EQ(store_->templates()->templates.size(), 1U);
}

TEST_F(StoreTest, KeysAreFoundByTheirHashAlone) {
    ASSERT_TRUE(store_->add_api_key({"k1", "t1", "default", "hash", "e2b_…", 1}));
    auto found = store_->team_of_key("hash");
    ASSERT_TRUE(found);
    ASSERT_TRUE(*found);
    EXPECT_EQ((*found)->slug, "team");
    EXPECT_FALSE(*store_->team_of_key("other"));
}

TEST_F(StoreTest, SandboxesSurviveAReopening) {
    SandboxRecord record;
    record.id = "i1";
    record.team_id = "t1";
    record.state = SandboxState::running;
    record.ends_ms = 1234567890123;
    record.allow_internet_access = false;
    record.network_json = R"({"denyOut":["0.0.0.0/0"]})";
    record.metadata = {{"a", "b \"c\""}, {"\xc3\xa9", ""}};
    record.env_vars = {{"A", "line\nbreak"}};
    record.allow_out = {"1.1.1.1"};
    record.deny_out = {"0.0.0.0/0"};
    record.run_id = "r1";
    record.auto_pause = record.auto_resume = true;
    record.auto_pause_memory = record.paused_with_memory = record.public_traffic = false;
    record.mask_request_host = "localhost:${PORT}";
    record.timeout_s = 77;
    record.warned_ms = 1234567890000;
    record.header_rules = {{"a.com", "X-Key", "Bearer ${e2b.secrets.k}"}, {"a.com", "X-Key", "\"2\""}};
    record.egress_proxy = {"proxy.example.com:1080", "user", "sealed"};
    ASSERT_TRUE(store_->commit({.put_sandboxes = {record}}));
    open();
    auto rows = store_->sandboxes();
    ASSERT_TRUE(rows);
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ((*rows)[0].metadata, record.metadata);
    EXPECT_EQ((*rows)[0].ends_ms, record.ends_ms);
    EXPECT_EQ((*rows)[0].state, SandboxState::running);
    EXPECT_EQ((*rows)[0].allow_internet_access, false);
    EXPECT_EQ((*rows)[0].network_json, record.network_json);
    EXPECT_EQ((*rows)[0].env_vars, record.env_vars);
    EXPECT_EQ((*rows)[0].allow_out, record.allow_out);
    EXPECT_EQ((*rows)[0].deny_out, record.deny_out);
    EXPECT_EQ((*rows)[0].run_id, "r1");
    EXPECT_TRUE((*rows)[0].auto_pause && (*rows)[0].auto_resume);
    EXPECT_FALSE((*rows)[0].auto_pause_memory || (*rows)[0].paused_with_memory || (*rows)[0].public_traffic);
    EXPECT_EQ((*rows)[0].mask_request_host, record.mask_request_host);
    EXPECT_EQ((*rows)[0].timeout_s, 77);
    EXPECT_EQ((*rows)[0].warned_ms, record.warned_ms);
    EXPECT_EQ((*rows)[0].header_rules, record.header_rules);
    EXPECT_EQ((*rows)[0].egress_proxy, record.egress_proxy);
    ASSERT_TRUE(store_->commit({.remove_sandboxes = {"i1"}}));
    ASSERT_TRUE(store_->commit({.remove_sandboxes = {"i1"}}));
    EXPECT_TRUE(store_->sandboxes()->empty());
}

TEST_F(StoreTest, ASecondTeamOfTheSameSlugIsRefused) {
    auto status = store_->add_team({"t2", "Other", "team", "pro"});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::already_exists);
}

TEST_F(StoreTest, ARevokedKeyIsUnknownAtOnce) {
    ASSERT_TRUE(store_->add_api_key({"k1", "t1", "default", "hash", "mask", 1}));
    EXPECT_EQ(store_->api_keys("t1")->size(), 1U);
    EXPECT_FALSE(store_->remove_api_key("other", "k1"));
    EXPECT_FALSE(store_->known_team_of_key("hash"));
    EXPECT_TRUE(*store_->team_of_key("hash"));
    EXPECT_EQ(store_->known_team_of_key("hash")->slug, "team");
    Team changed = team_;
    changed.plan = "hobby";
    ASSERT_TRUE(store_->update_team(changed));
    EXPECT_FALSE(store_->known_team_of_key("hash"));
    EXPECT_EQ((*store_->team_of_key("hash"))->plan, "hobby");
    ASSERT_TRUE(store_->remove_api_key("t1", "k1"));
    EXPECT_FALSE(store_->known_team_of_key("hash"));
    EXPECT_FALSE(*store_->team_of_key("hash"));
    EXPECT_EQ(store_->remove_api_key("t1", "k1").error().code, ErrorCode::not_found);
}

TEST_F(StoreTest, AChangeIsWholeOrNotAtAll) {
    SandboxRecord good;
    good.id = "i1";
    good.team_id = "t1";
    SandboxRecord orphan = good;
    orphan.id = "i2";
    orphan.team_id = "nobody";
    Event event;
    event.id = "e1";
    event.team_id = "t1";
    EXPECT_FALSE(store_->commit({.put_sandboxes = {good, orphan}, .events = {event}}));
    EXPECT_TRUE(store_->sandboxes()->empty());
    EXPECT_TRUE(store_->events({.team_id = "t1"})->empty());
}

TEST_F(StoreTest, OneRefusedChangeDoesNotUndoItsNeighbours) {
    std::vector<std::thread> writers;
    std::atomic<int> kept = 0, refused = 0;
    for (int i = 0; i < 40; ++i)
        writers.emplace_back([&, i] {
            SandboxRecord record;
            record.id = "i" + std::to_string(i);
            record.team_id = i % 4 == 0 ? "nobody" : "t1";
            ++(store_->commit({.put_sandboxes = {record}}) ? kept : refused);
        });
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(kept, 30);
    EXPECT_EQ(refused, 10);
    EXPECT_EQ(store_->sandboxes()->size(), 30U);
}

TEST_F(StoreTest, RunsAreFoundByTeamAndTime) {
    auto run = [](std::string id, std::string team, std::int64_t from, std::int64_t to) {
        return SandboxRun{std::move(id), "i1", std::move(team), "tid", 2, 512, from, from, to};
    };
    ASSERT_TRUE(store_->commit(
        {.put_runs = {run("a", "t1", 100, 200), run("b", "t1", 300, 0), run("c", "t2", 100, 200)}}));
    EXPECT_EQ(store_->runs("t1", 0, 1000)->size(), 2U);
    EXPECT_EQ(store_->runs("", 0, 1000)->size(), 3U);
    EXPECT_EQ(store_->runs("t1", 200, 300)->size(), 0U);
    EXPECT_EQ(store_->runs("t1", 199, 301)->size(), 2U);
    EXPECT_EQ(store_->open_runs()->size(), 1U);
    ASSERT_TRUE(store_->see_open_runs(900));
    EXPECT_EQ(store_->open_runs()->at(0).seen_ms, 900);
    EXPECT_EQ(store_->runs("t1", 0, 250)->at(0).seen_ms, 100);
    ASSERT_TRUE(store_->commit({.put_runs = {run("b", "t1", 300, 950)}}));
    EXPECT_TRUE(store_->open_runs()->empty());
}

TEST_F(StoreTest, EventsArePagedAndReachTheWebhooksThatWantThem) {
    Webhook wants{"w1", "t1", "one", "http://x", "s", true, {"created"}, 1};
    Webhook other{"w2", "t1", "two", "http://y", "s", true, {"killed"}, 2};
    Webhook off{"w3", "t1", "three", "http://z", "s", false, {"created"}, 3};
    for (const Webhook& webhook : {wants, other, off}) ASSERT_TRUE(store_->put_webhook(webhook));
    for (int i = 0; i < 5; ++i) {
        Event event;
        event.id = "e" + std::to_string(i);
        event.type = i == 4 ? "killed" : "created";
        event.team_id = "t1";
        event.sandbox_id = i % 2 == 0 ? "even" : "odd";
        event.time_ms = 1000 + i;
        event.data_json = "{}";
        ASSERT_TRUE(store_->commit({.events = {event}}));
    }
    EXPECT_EQ(store_->events({.team_id = "t1"})->at(0).id, "e4");
    EXPECT_EQ(store_->events({.team_id = "t1", .offset = 1, .limit = 2, .ascending = true})->at(0).id, "e1");
    EXPECT_EQ(store_->events({.team_id = "t1", .sandbox_id = "odd"})->size(), 2U);
    EXPECT_EQ(store_->events({.team_id = "t1", .types = {"killed"}})->size(), 1U);
    EXPECT_TRUE(store_->events({.team_id = "t2"})->empty());

    auto due = store_->due_deliveries({.now_ms = 2000});
    ASSERT_EQ(due->size(), 5U);
    EXPECT_EQ(due->at(0).event.id, "e0");
    EXPECT_EQ(due->at(0).webhook.id, "w1");
    EXPECT_EQ(due->at(4).webhook.id, "w2");
    // One that has many waiting hides no other.
    auto fair = store_->due_deliveries({.now_ms = 2000, .webhooks = 2, .per_webhook = 1});
    ASSERT_EQ(fair->size(), 2U);
    EXPECT_EQ(fair->at(0).event.id, "e0");
    EXPECT_EQ(fair->at(1).webhook.id, "w2");
    EXPECT_EQ(store_->due_deliveries({.now_ms = 2000, .not_webhooks = {"w1"}})->size(), 1U);
    EXPECT_TRUE(store_->due_deliveries({.now_ms = 2000, .not_teams = {"t1"}})->empty());
    EXPECT_EQ(store_->next_delivery_ms(999), 1000);
    EXPECT_EQ(*store_->next_delivery_ms(2000), std::nullopt);
    ASSERT_TRUE(store_->finish_delivery(due->at(0).id));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(store_->postpone_delivery(due->at(1).id, 2500, 9000, "no answer"));
    EXPECT_EQ(store_->due_deliveries({.now_ms = 2000})->size(), 3U);
    EXPECT_EQ(store_->due_deliveries({.now_ms = 9000})->at(2).attempts, 3);  // the last of w1 now
    wants.name = "renamed";
    ASSERT_TRUE(store_->put_webhook(wants));  // keeps what is on its way
    EXPECT_EQ(store_->due_deliveries({.now_ms = 9000})->size(), 4U);
    EXPECT_EQ(store_->webhooks("t1")->at(0).name, "renamed");
    auto failing = store_->deliveries("w1", 10, INT64_MAX);
    ASSERT_EQ(failing->size(), 3U);
    EXPECT_EQ(failing->at(0).event_id, "e3");  // the newest first
    EXPECT_EQ(failing->at(0).attempts, 0);
    EXPECT_EQ(failing->at(2).last_error, "no answer");
    EXPECT_EQ(failing->at(2).attempts, 3);
    EXPECT_EQ(failing->at(2).tried_ms, 2500);
    EXPECT_EQ(failing->at(2).next_ms, 9000);
    // In pages, each from where the one before ended.
    std::vector<std::string> paged;
    for (std::int64_t before = INT64_MAX;;) {
        const auto page = store_->deliveries("w1", 1, before);
        if (page->empty()) break;
        ASSERT_EQ(page->size(), 1U);
        paged.push_back(page->front().event_id);
        before = page->front().place;
    }
    EXPECT_EQ(paged, (std::vector<std::string>{"e3", "e2", "e1"}));
    // One that was given up is never due again, and still to be seen.
    ASSERT_TRUE(store_->postpone_delivery(due->at(1).id, 9100, std::nullopt, "refused"));
    EXPECT_EQ(store_->due_deliveries({.now_ms = INT64_MAX - 1})->size(), 3U);
    EXPECT_EQ(*store_->next_delivery_ms(9100), std::nullopt);
    EXPECT_EQ(store_->deliveries("w1", 10, INT64_MAX)->at(2).next_ms, std::nullopt);
    ASSERT_TRUE(store_->remove_webhook("t1", "w1"));
    EXPECT_EQ(store_->due_deliveries({.now_ms = 9000})->size(), 1U);
    EXPECT_FALSE(store_->remove_webhook("t2", "w2"));
    ASSERT_TRUE(store_->forget_before(INT64_MAX));
    EXPECT_TRUE(store_->events({.team_id = "t1"})->empty());
    EXPECT_TRUE(store_->due_deliveries({.now_ms = 9000})->empty());
}

TEST_F(StoreTest, TellsOfWhatMayBeDelivered) {
    std::atomic<int> told = 0;
    store_->on_delivery([&] { ++told; });
    ASSERT_TRUE(store_->put_webhook({.id = "w", .team_id = "t1", .events = {"created"}}));
    EXPECT_EQ(told, 1);
    ASSERT_TRUE(store_->commit({}));  // no event
    ASSERT_TRUE(
        store_->commit({.events = {{.id = "e", .type = "created", .team_id = "t1", .data_json = "{}"}}}));
    ASSERT_TRUE(store_->commit({}));  // what the store's thread did before is over
    EXPECT_EQ(told, 2);
    store_->on_delivery({});
    ASSERT_TRUE(store_->put_webhook({.id = "w", .team_id = "t1", .events = {"created"}}));
    EXPECT_EQ(told, 2);
}

TEST_F(StoreTest, MetricsAndLogsAreKeptByTime) {
    ASSERT_TRUE(store_->add_metrics(
        {{"i1", "t1", 1000, 2, 12.5, 1, 2, 3, 4, 5}, {"i1", "t1", 2000, 2, 50, 1, 2, 3, 4, 5}}));
    ASSERT_TRUE(store_->add_metrics({{"i2", "t1", 1500, 1, 0, 0, 0, 0, 0, 0}}));
    EXPECT_EQ(store_->metrics({.sandbox_id = "i1"})->size(), 2U);
    EXPECT_EQ(store_->metrics({.sandbox_id = "i1", .from_ms = 1001})->at(0).cpu_used_pct, 50);
    auto latest = store_->latest_metrics({"i1", "none", "i2"});
    ASSERT_EQ(latest->size(), 2U);
    EXPECT_EQ(latest->at(0).time_ms, 2000);
    ASSERT_TRUE(store_->add_logs(
        {{1, "i1", "t1", "debug", "one", {}}, {2, "i1", "t1", "error", "two", {{"k", "v"}}}}));
    EXPECT_EQ(store_->logs({.sandbox_id = "i1"})->at(0).message, "one");
    EXPECT_EQ(store_->logs({.sandbox_id = "i1", .newest_first = true, .limit = 1})->at(0).message, "two");
    EXPECT_EQ(store_->logs({.sandbox_id = "i1", .least_level = "warn"})->at(0).fields.at("k"), "v");
    EXPECT_EQ(store_->logs({.sandbox_id = "i1", .search = "on"})->size(), 1U);
    ASSERT_TRUE(store_->forget_before(2));
    EXPECT_EQ(store_->logs({.sandbox_id = "i1"})->size(), 1U);
}

TEST_F(StoreTest, AFileOfTheFirstVersionIsBroughtUpToDate) {
    const auto path = dir_ / "old";
    {
        SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        db.exec(
            "CREATE TABLE team (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE, "
            "max_sandboxes "
            "INTEGER NOT NULL, max_lifetime_s INTEGER NOT NULL) STRICT; CREATE TABLE api_key (id TEXT "
            "PRIMARY KEY, "
            "team_id TEXT NOT NULL REFERENCES team(id) ON DELETE CASCADE, name TEXT NOT NULL, hash TEXT NOT "
            "NULL "
            "UNIQUE, mask TEXT NOT NULL, created_ms INTEGER NOT NULL) STRICT; CREATE TABLE sandbox (id TEXT "
            "PRIMARY "
            "KEY, team_id TEXT NOT NULL) STRICT; INSERT INTO team VALUES ('t9','Old','old',7,60); INSERT "
            "INTO api_key "
            "VALUES ('k','t9','n','h','m',1); PRAGMA user_version=1;");
    }
    auto store = open_sqlite_store(path);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->team_of_key("h")->value().plan, "pro");
    EXPECT_TRUE((*store)->sandboxes()->empty());
}

SecretRecord secret_of(std::string id, std::string team, std::string name) {
    return {.id = std::move(id),
            .team_id = std::move(team),
            .name = std::move(name),
            .version = 1,
            .metadata = {{"env", "test"}},
            .sealed = "s1",
            .created_ms = 5,
            .updated_ms = 5};
}

TEST_F(StoreTest, SecretsAreTheirTeamsAlone) {
    ASSERT_TRUE(store_->add_team({"t2", "Two", "two", "pro"}));
    ASSERT_TRUE(store_->add_secret(secret_of("sec_1", "t1", "key")));
    ASSERT_TRUE(store_->add_secret(secret_of("sec_2", "t2", "key")));
    EXPECT_EQ(store_->add_secret(secret_of("sec_3", "t1", "key")).error().code, ErrorCode::already_exists);
    open();
    for (const char* by : {"sec_1", "key"}) {
        auto found = store_->secret("t1", by);
        ASSERT_TRUE(found && *found) << by;
        EXPECT_EQ((*found)->id, "sec_1");
        EXPECT_EQ((*found)->metadata.at("env"), "test");
        EXPECT_EQ((*found)->sealed, "s1");
    }
    EXPECT_FALSE(*store_->secret("t1", "sec_2"));
    EXPECT_FALSE(*store_->secret("t1", "none"));
    EXPECT_EQ(store_->remove_secret("t1", "sec_2").error().code, ErrorCode::not_found);
    ASSERT_TRUE(store_->remove_secret("t2", "sec_2"));
    EXPECT_FALSE(*store_->secret("t2", "key"));
    EXPECT_TRUE(*store_->secret("t1", "key"));
}

TEST_F(StoreTest, OfTwoUpdatesOfOneVersionOneWins) {
    ASSERT_TRUE(store_->add_secret(secret_of("sec_1", "t1", "key")));
    SecretRecord next = secret_of("sec_1", "t1", "key");
    next.version = 2;
    next.sealed = "s2";
    next.updated_ms = 9;
    next.metadata.clear();
    ASSERT_TRUE(store_->update_secret(next));
    next.sealed = "s2 of another";
    EXPECT_EQ(store_->update_secret(next).error().code, ErrorCode::aborted);
    const SecretRecord now = **store_->secret("t1", "key");
    EXPECT_EQ(now.version, 2);
    EXPECT_EQ(now.sealed, "s2");
    EXPECT_EQ(now.created_ms, 5);
    EXPECT_EQ(now.updated_ms, 9);
    EXPECT_TRUE(now.metadata.empty());
}

TEST_F(StoreTest, SecretsComeInPages) {
    for (int i = 0; i < 5; ++i) {
        const std::string n = std::to_string(i);
        ASSERT_TRUE(store_->add_secret(secret_of("sec_" + n, "t1", "k" + n)));
    }
    auto first = store_->secrets({.team_id = "t1", .limit = 3});
    ASSERT_TRUE(first && first->size() == 3);
    auto rest = store_->secrets({.team_id = "t1", .after_id = first->back().id, .limit = 3});
    ASSERT_TRUE(rest && rest->size() == 2);
    EXPECT_EQ(rest->back().id, "sec_4");
    EXPECT_EQ(store_->count_secrets("t1"), 5U);
    EXPECT_EQ(store_->count_secrets("t2"), 0U);
}

TEST_F(StoreTest, ASandboxFindsTheSecretsOfItsTeam) {
    ASSERT_TRUE(store_->add_team({"t2", "Two", "two", "pro"}));
    ASSERT_TRUE(store_->add_secret(secret_of("sec_1", "t1", "key")));
    SandboxRecord mine, other;
    mine.id = "i1";
    mine.team_id = "t1";
    other.id = "i2";
    other.team_id = "t2";
    ASSERT_TRUE(store_->commit({.put_sandboxes = {mine, other}}));
    EXPECT_TRUE(*store_->secret_for("i1", "key"));
    EXPECT_FALSE(*store_->secret_for("i1", "none"));
    EXPECT_FALSE(*store_->secret_for("i1", "sec_1")) << "by name only";
    EXPECT_FALSE(*store_->secret_for("i2", "key"));
    EXPECT_FALSE(*store_->secret_for("i3", "key"));
}

TEST_F(StoreTest, WhoseASandboxWasIsKnownAfterItsEnd) {
    SandboxRecord record;
    record.id = "i1";
    record.team_id = "t1";
    ASSERT_TRUE(store_->commit({.put_sandboxes = {record}}));
    EXPECT_EQ(*store_->team_of_sandbox("i1"), "t1");
    SandboxRun run;
    run.id = "r1";
    run.sandbox_id = "i1";
    run.team_id = "t1";
    ASSERT_TRUE(store_->commit({.remove_sandboxes = {"i1"}, .put_runs = {run}}));
    ASSERT_TRUE(store_->forget_before(INT64_MAX));
    EXPECT_EQ(*store_->team_of_sandbox("i1"), "t1");
    EXPECT_FALSE(*store_->team_of_sandbox("i2"));
}

TEST_F(StoreTest, SandboxesOfTheFifthVersionHaveNoHeadersAndNoProxy) {
    SandboxRecord record;
    record.id = "i1";
    record.team_id = "t1";
    record.deny_out = {"0.0.0.0/0"};
    ASSERT_TRUE(store_->commit({.put_sandboxes = {record}}));
    store_.reset();
    {
        SQLite::Database db(dir_ / "db", SQLite::OPEN_READWRITE);
        db.exec(kBackToFifth);
    }
    open();
    auto rows = store_->sandboxes();
    ASSERT_TRUE(rows && rows->size() == 1);
    EXPECT_EQ((*rows)[0].deny_out, record.deny_out);
    EXPECT_TRUE((*rows)[0].header_rules.empty());
    EXPECT_EQ((*rows)[0].egress_proxy, EgressProxyRow());
    EXPECT_TRUE(store_->add_secret(secret_of("sec_1", "t1", "key")));
}

TEST_F(StoreTest, SandboxesOfTheFourthVersionWereNotWarnedOfAnything) {
    SandboxRecord record;
    record.id = "i1";
    record.team_id = "t1";
    record.state = SandboxState::paused;
    record.metadata = {{"a", "b"}};
    ASSERT_TRUE(store_->commit({.put_sandboxes = {record}}));
    store_.reset();
    {
        SQLite::Database db(dir_ / "db", SQLite::OPEN_READWRITE);
        db.exec(std::string(kBackToFifth) +
                "ALTER TABLE sandbox DROP COLUMN warned_ms; PRAGMA user_version=4;");
    }
    open();
    auto rows = store_->sandboxes();
    ASSERT_TRUE(rows && rows->size() == 1);
    EXPECT_EQ((*rows)[0].warned_ms, 0);
    EXPECT_EQ((*rows)[0].metadata, record.metadata);
}

TEST_F(StoreTest, AFileOfANewerVersionIsRefused) {
    const auto path = dir_ / "new";
    {
        SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        db.exec("PRAGMA user_version=99");
    }
    auto store = open_sqlite_store(path);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::failed_precondition);
}

TEST_F(StoreTest, TheFileIsPrivate) {
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / "db").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST(Store, AMissingFolderIsAClearError) {
    auto store = open_sqlite_store("/no/such/folder/db");
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb
