// SPDX-License-Identifier: Apache-2.0
#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

class SnapshotsTest : public SandboxesTest {
  protected:
    awaitable<std::string> made(CreateSandbox wanted = request()) {
        auto view = co_await sandboxes_->create(team_, std::move(wanted));
        EXPECT_TRUE(view);
        co_return view ? view->record.id : "";
    }
    awaitable<std::string> taken(const std::string& id, std::string name = "") {
        auto snapshot = co_await sandboxes_->snapshot(team_, id, std::move(name));
        EXPECT_TRUE(snapshot) << snapshot.error().message;
        co_return snapshot ? snapshot->id : "";
    }
    std::vector<std::string> listed(const SnapshotQuery& query = {}) {
        std::vector<std::string> out;
        for (const Snapshot& snapshot : sandboxes_->templates().snapshots(team_, query)->items)
            out.push_back(snapshot.id);
        return out;
    }
    awaitable<Result<SandboxView>> start(std::string ref, Team team) {
        CreateSandbox wanted = request();
        wanted.template_ref = std::move(ref);
        co_return co_await sandboxes_->create(std::move(team), std::move(wanted));
    }
    awaitable<Status> removed(std::string ref, Team team) {
        co_return co_await sandboxes_->templates().remove(
            std::move(team), std::move(ref),
            [&](const std::string& build) { return sandboxes_->uses_build(build); });
    }
    using Ids = std::vector<std::string>;
};

TEST_F(SnapshotsTest, ASnapshotIsATemplateOfItsTeamAlone) {
    run([&]() -> awaitable<void> {
        CreateSandbox wanted = request();
        wanted.env_vars = {{"A", "1"}};
        const std::string id = co_await made(wanted);
        const std::string snapshot = co_await taken(id);
        EXPECT_TRUE(snapshot.ends_with(":default")) << snapshot;
        EXPECT_EQ(node_.last_snapshot.sandbox_id, id);
        EXPECT_EQ(node_.last_snapshot.env_vars, wanted.env_vars);
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_EQ(listed(), Ids{snapshot});
        EXPECT_TRUE(sandboxes_->templates().snapshots(other_, {})->items.empty());
        auto copy = co_await start(snapshot, team_);
        EXPECT_TRUE(copy);
        EXPECT_EQ(node_.last_spec.snapshot_build, node_.last_snapshot.build_id);
        EXPECT_EQ(copy->record.build_id, node_.last_snapshot.build_id);
        EXPECT_EQ((co_await start(snapshot, other_)).error().code, ErrorCode::permission_denied);
        EXPECT_EQ((co_await removed(snapshot, other_)).error().code, ErrorCode::permission_denied);
        EXPECT_EQ(events(), (Ids{"created", "checkpointed", "created"}));
    });
}

TEST_F(SnapshotsTest, NamesTagsAndListing) {
    team_.plan = "pro";
    run([&]() -> awaitable<void> {
        const std::string id = co_await made(), other = co_await made();
        EXPECT_EQ(co_await taken(id, "Mine"), "one/mine:default");
        EXPECT_EQ(co_await taken(other, "one/mine:v2"), "one/mine:v2");
        const std::string unnamed = co_await taken(id);
        EXPECT_EQ(listed().size(), 3U);
        EXPECT_EQ(listed({.name = "mine"}).size(), 2U);
        EXPECT_EQ(listed({.name = "one/mine:v2"}), Ids{"one/mine:v2"});
        EXPECT_EQ(listed({.name = "mine:v2"}), Ids{"one/mine:v2"});
        EXPECT_EQ(listed({.name = "Mine:default"}), Ids{"one/mine:default"});
        EXPECT_TRUE(listed({.name = "mine:v3"}).empty());
        EXPECT_EQ(listed({.name = unnamed}), Ids{unnamed});
        EXPECT_EQ(listed({.sandbox_id = other}), Ids{"one/mine:v2"});
        EXPECT_TRUE(listed({.name = "no-such"}).empty());
        EXPECT_TRUE(listed({.name = "two/mine"}).empty());
        EXPECT_TRUE(listed({.name = "not a name"}).empty());
        Ids pages;
        std::string token;
        do {
            auto page = sandboxes_->templates().snapshots(team_, {.limit = 1, .next_token = token});
            EXPECT_TRUE(page);
            if (!page) break;
            for (const Snapshot& item : page->items) pages.push_back(item.id);
            token = page->next_token;
        } while (!token.empty());
        EXPECT_EQ(pages, listed());
        EXPECT_FALSE(sandboxes_->templates().snapshots(team_, {.next_token = "AAAA"}));

        EXPECT_EQ((co_await sandboxes_->snapshot(team_, id, "two/mine")).error().code,
                  ErrorCode::invalid_argument);
        EXPECT_EQ((co_await sandboxes_->snapshot(team_, id, "a b")).error().code,
                  ErrorCode::invalid_argument);
        EXPECT_TRUE(co_await start("one/mine:v2", team_)) << "by all its names";
        co_return;
    });
}

TEST_F(SnapshotsTest, TheSameNameAgainReplacesAndTagsMove) {
    team_.plan = "pro";
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        co_await taken(id, "mine");
        const std::string first = node_.last_snapshot.build_id;
        auto given = co_await sandboxes_->templates().assign_tags(team_, "mine", {"stable", "v1"});
        EXPECT_TRUE(given);
        EXPECT_EQ(given->build_id, first);
        co_await taken(id, "mine");
        const std::string second = node_.last_snapshot.build_id;
        EXPECT_TRUE(node_.snapshot_builds.contains(first)) << "it has other tags";
        EXPECT_EQ((co_await start("mine", team_))->record.build_id, second);
        EXPECT_EQ((co_await start("mine:stable", team_))->record.build_id, first);
        EXPECT_EQ((co_await start("mine:none", team_)).error().code, ErrorCode::not_found);
        EXPECT_EQ(sandboxes_->templates().tags(team_, "mine")->size(), 3U);

        co_await taken(id, "mine");
        EXPECT_FALSE(node_.snapshot_builds.contains(second)) << "nothing leads to it any more";
        const auto in_use = [](const std::string&) { return false; };
        EXPECT_EQ(
            (co_await sandboxes_->templates().remove_tags(team_, "mine", {"default"}, in_use)).error().code,
            ErrorCode::invalid_argument);
        EXPECT_EQ((co_await sandboxes_->templates().remove_tags(team_, "mine", {"v1", "none"}, in_use))
                      .error()
                      .code,
                  ErrorCode::not_found);
        EXPECT_TRUE(co_await sandboxes_->templates().remove_tags(team_, "mine", {"v1"}, in_use));
        EXPECT_EQ(listed({.name = "mine"}).size(), 2U);
        EXPECT_EQ((co_await sandboxes_->templates().assign_tags(team_, "mine", {":x"})).error().code,
                  ErrorCode::invalid_argument);
        EXPECT_EQ((co_await sandboxes_->templates().assign_tags(team_, "none", {"x"})).error().code,
                  ErrorCode::not_found);
    });
}

TEST_F(SnapshotsTest, RemovedOnceAndNotWhileItIsUsed) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        const std::string snapshot = co_await taken(id, "mine");
        auto copy = co_await start(snapshot, team_);
        EXPECT_EQ((co_await removed(snapshot, team_)).error().code, ErrorCode::failed_precondition);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, copy->record.id, PauseMode::with_memory));
        EXPECT_EQ((co_await removed("mine", team_)).error().code, ErrorCode::failed_precondition);
        EXPECT_TRUE(co_await sandboxes_->kill(team_, copy->record.id));
        EXPECT_TRUE(co_await removed(snapshot, team_));
        EXPECT_EQ((co_await removed(snapshot, team_)).error().code, ErrorCode::not_found);
        EXPECT_TRUE(node_.snapshot_builds.empty());
        EXPECT_TRUE(store_->templates()->templates.empty());
        EXPECT_TRUE(store_->templates()->builds.empty());
        EXPECT_TRUE(store_->templates()->tags.empty());
        EXPECT_EQ((co_await removed("base", team_)).error().code, ErrorCode::permission_denied);
    });
}

TEST_F(SnapshotsTest, TheyOutliveTheirSourceAndARestart) {
    std::string snapshot;
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        snapshot = co_await taken(id, "mine");
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
    });
    node_.snapshot_builds.insert("never answered");
    open();
    run([&]() -> awaitable<void> {
        EXPECT_EQ(listed(), Ids{snapshot});
        EXPECT_TRUE(co_await start(snapshot, team_));
        EXPECT_EQ(node_.snapshot_builds.size(), 1U);
    });
}

TEST_F(SnapshotsTest, OldOnesAreWarnedOfAndRemovedUnlessTheyAreUsed) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        const std::string used = co_await taken(id, "used");
        co_await taken(id, "unused");
        const std::string unused = node_.last_snapshot.build_id;
        auto copy = co_await start(used, team_);
        const Retention retention{.paused_ms = 0, .snapshots_ms = 1000, .warn_ms = 300};
        const auto in_use = [&](const std::string& build) { return sandboxes_->uses_build(build); };
        const std::int64_t now = store_->templates()->builds[1].created_ms;
        co_await sandboxes_->templates().apply_retention(retention, now + 600, in_use);
        EXPECT_EQ(store_->templates()->builds[1].warned_ms, 0);
        co_await sandboxes_->templates().apply_retention(retention, now + 800, in_use);
        co_await sandboxes_->templates().apply_retention(retention, now + 900, in_use);
        EXPECT_EQ(store_->templates()->builds[1].warned_ms, now + 800);
        EXPECT_EQ(store_->templates()->builds[0].warned_ms, 0) << "it stays";
        EXPECT_EQ(std::ranges::count(events(), "expiring"), 1);
        co_await sandboxes_->templates().apply_retention(retention, now + 1050, in_use);
        EXPECT_TRUE(node_.snapshot_builds.contains(unused)) << "it was told that there is time";
        co_await sandboxes_->templates().apply_retention(retention, now + 1100, in_use);
        EXPECT_FALSE(node_.snapshot_builds.contains(unused));
        EXPECT_EQ(listed(), Ids{used});
        EXPECT_TRUE(co_await sandboxes_->kill(team_, copy->record.id));
        co_await sandboxes_->templates().apply_retention(retention, now + 1100, in_use);
        co_await sandboxes_->templates().apply_retention(retention, now + 1400, in_use);
        EXPECT_TRUE(listed().empty());
    });
}

TEST_F(SnapshotsTest, OneAtATimeOfOneThatRuns) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        node_.snapshot_delay_ms = 100;
        bool first = false;
        asio::co_spawn(io_, sandboxes_->snapshot(team_, id, ""),
                       [&](const std::exception_ptr&, Result<Snapshot> done) { first = done.has_value(); });
        co_await sleep(20);
        EXPECT_EQ((co_await sandboxes_->snapshot(team_, id, "")).error().code,
                  ErrorCode::failed_precondition);
        EXPECT_EQ((co_await sandboxes_->fork(team_, id, 1, 60)).error().code, ErrorCode::failed_precondition);
        co_await sleep(200);
        EXPECT_TRUE(first);
        node_.snapshot_delay_ms = 0;
        node_.snapshot_error = Error(ErrorCode::no_space, "the disk is full");
        EXPECT_EQ((co_await sandboxes_->snapshot(team_, id, "")).error().code, ErrorCode::no_space);
        EXPECT_EQ((co_await sandboxes_->fork(team_, id, 1, 60)).error().code, ErrorCode::no_space);
        node_.snapshot_error.reset();
        co_await taken(id);
        EXPECT_EQ(sandboxes_->counts().running, 1U);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        EXPECT_EQ((co_await sandboxes_->snapshot(team_, id, "")).error().code,
                  ErrorCode::failed_precondition);
        EXPECT_EQ((co_await sandboxes_->fork(team_, id, 1, 60)).error().code, ErrorCode::failed_precondition);
        EXPECT_EQ((co_await sandboxes_->snapshot(other_, id, "")).error().code, ErrorCode::not_found);
    });
}

TEST_F(SnapshotsTest, ASourceThatIsKilledMeanwhileIsNotFound) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        node_.snapshot_delay_ms = 100;
        ErrorCode answer = ErrorCode::unknown;
        asio::co_spawn(io_, sandboxes_->snapshot(team_, id, ""),
                       [&](const std::exception_ptr&, Result<Snapshot> done) {
                           if (!done) answer = done.error().code;
                       });
        co_await sleep(20);
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
        co_await sleep(200);
        EXPECT_EQ(answer, ErrorCode::not_found);
        EXPECT_TRUE(listed().empty());
    });
}

TEST_F(SnapshotsTest, ASourceThatIsPausedMeanwhileIsToBeResumedFirst) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        node_.snapshot_delay_ms = 100;
        ErrorCode taken = ErrorCode::unknown, forked = ErrorCode::unknown;
        asio::co_spawn(io_, sandboxes_->snapshot(team_, id, ""),
                       [&](const std::exception_ptr&, Result<Snapshot> done) {
                           if (!done) taken = done.error().code;
                       });
        co_await sleep(20);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        co_await sleep(200);
        EXPECT_EQ(taken, ErrorCode::failed_precondition);
        EXPECT_TRUE(co_await sandboxes_->resume(team_, id, 60));
        asio::co_spawn(io_, sandboxes_->fork(team_, id, 1, 60),
                       [&](const std::exception_ptr&, Result<std::vector<Result<SandboxView>>> done) {
                           if (!done) forked = done.error().code;
                       });
        co_await sleep(20);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        co_await sleep(200);
        EXPECT_EQ(forked, ErrorCode::failed_precondition);
        EXPECT_TRUE(listed().empty());
        EXPECT_EQ(sandboxes_->counts().running, 0U);
    });
}

TEST_F(SnapshotsTest, ForksAreSandboxesOfTheirOwn) {
    team_.plan = "pro";
    run([&]() -> awaitable<void> {
        CreateSandbox wanted = request(600);
        wanted.metadata = {{"kind", "source"}};
        wanted.env_vars = {{"A", "1"}};
        wanted.auto_pause = true;
        wanted.public_traffic = false;
        const std::string id = co_await made(wanted);
        auto source = sandboxes_->get(team_, id);
        auto forks = co_await sandboxes_->fork(team_, id, 3, 60);
        EXPECT_TRUE(forks);
        if (!forks) co_return;
        std::set<std::string> ids{id}, tokens{source->access_token, source->traffic_token};
        for (const auto& fork : *forks) {
            EXPECT_TRUE(fork);
            if (!fork) continue;
            ids.insert(fork->record.id);
            tokens.insert(fork->access_token);
            tokens.insert(fork->traffic_token);
            EXPECT_EQ(fork->record.metadata, wanted.metadata);
            EXPECT_EQ(fork->record.env_vars, wanted.env_vars);
            EXPECT_TRUE(fork->record.auto_pause);
            EXPECT_EQ(fork->record.timeout_s, 60);
            EXPECT_EQ(fork->record.template_id, source->record.template_id);
            EXPECT_EQ(fork->record.ends_ms - fork->record.started_ms, 60'000);
        }
        EXPECT_EQ(ids.size(), 4U);
        EXPECT_EQ(tokens.size(), 8U);
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_EQ(store_->sandboxes()->size(), 4U);
        EXPECT_TRUE(node_.snapshot_builds.empty()) << "the copy was for the forks alone";
        EXPECT_TRUE(listed().empty());
        EXPECT_EQ(runs().size(), 4U);
    });
}

TEST_F(SnapshotsTest, WhatCannotBeForkedIsRefusedWhole) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        for (int count : {0, -1, 101})
            EXPECT_EQ((co_await sandboxes_->fork(team_, id, count, 60)).error().code,
                      ErrorCode::invalid_argument);
        for (std::int64_t timeout : {0, -5, 1'000'000})
            EXPECT_EQ((co_await sandboxes_->fork(team_, id, 1, timeout)).error().code,
                      ErrorCode::invalid_argument);
        EXPECT_EQ((co_await sandboxes_->fork(team_, id, 2, 60)).error().code, ErrorCode::resource_exhausted)
            << "there are two places, one is taken";
        EXPECT_EQ((co_await sandboxes_->fork(other_, id, 1, 60)).error().code, ErrorCode::not_found);
        EXPECT_EQ((co_await sandboxes_->fork(team_, "inone", 1, 60)).error().code, ErrorCode::not_found);
        EXPECT_TRUE(co_await sandboxes_->fork(team_, id, 1, 60));
    });
}

TEST_F(SnapshotsTest, AForkThatDoesNotStartSaysSoAndGivesItsPlaceBack) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await made();
        node_.create_error = Error(ErrorCode::unavailable, "no free memory");
        auto forks = co_await sandboxes_->fork(team_, id, 1, 60);
        EXPECT_TRUE(forks);
        EXPECT_EQ(forks->at(0).error().code, ErrorCode::unavailable);
        node_.create_error.reset();
        forks = co_await sandboxes_->fork(team_, id, 1, 60);
        EXPECT_TRUE(forks && forks->at(0));
        EXPECT_TRUE(node_.snapshot_builds.empty());
    });
}

}  // namespace
}  // namespace gb
