// SPDX-License-Identifier: Apache-2.0
// What tests of Sandboxes share: a store on disk, a node without machines, two teams.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "control/fake_node.h"
#include "control/sandboxes.h"
#include "control/store_fixture.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;

class SandboxesTest : public StoreFixture {
  protected:
    void SetUp() override {
        ASSERT_NO_FATAL_FAILURE(StoreFixture::SetUp());
        ASSERT_TRUE(store_->add_team(team_));
        ASSERT_TRUE(store_->add_team(other_));
        open();
    }
    // What a start of the server does.
    void open() {
        SandboxesOptions options;
        options.seed = "seed";
        options.plans.set({.name = "small", .max_sandboxes = 2, .creates_per_second = 1000});
        options.retention = retention_;
        options.sealer = sealer_;
        options.plans.set({.name = "slow", .max_sandboxes = 3, .creates_per_second = 0.1});
        sandboxes_ = std::make_unique<Sandboxes>(io_.get_executor(), pool_, *store_, node_, options);
        ASSERT_TRUE(sandboxes_->start());
        sandboxes_->on_gone([this](const std::string& id) { gone_.push_back(id); });
    }
    void TearDown() override {
        pool_.join();
        sandboxes_.reset();
        StoreFixture::TearDown();
    }

    void run(std::function<awaitable<void>()> body) {
        bool done = false;
        asio::co_spawn(io_, body(), [&](const std::exception_ptr& failure) {
            done = true;
            io_.stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.restart();
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done);
    }
    awaitable<void> sleep(int ms) {
        asio::steady_timer timer(io_, std::chrono::milliseconds(ms));
        co_await timer.async_wait(asio::use_awaitable);
    }
    static CreateSandbox request(int timeout_s = 60) {
        CreateSandbox out;
        out.template_ref = "base";
        out.timeout_s = timeout_s;
        return out;
    }
    // Types of the events of the team, oldest first, without their common beginning.
    std::vector<std::string> events() {
        std::vector<std::string> out;
        auto events = store_->events({.team_id = team_.id, .limit = 100, .ascending = true});
        if (!events) return out;
        for (const Event& event : *events) out.push_back(event.type.substr(event.type.rfind('.') + 1));
        return out;
    }
    // The store refuses every change from here on.
    void fail_changes() {
        alter_store("CREATE TRIGGER full BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'no'); END");
    }
    void succeed_again() { alter_store("DROP TRIGGER full"); }
    void alter_store(const char* sql) {
        SQLite::Database(dir_ / "db", SQLite::OPEN_READWRITE, 5000).exec(sql);
    }
    std::vector<SandboxRun> runs() {
        return store_->runs(team_.id, 0, INT64_MAX).value_or(std::vector<SandboxRun>{});
    }

    asio::io_context io_;
    asio::thread_pool pool_{2};
    FakeNode node_;
    std::shared_ptr<const Sealer> sealer_;
    Retention retention_;
    Team team_{"t1", "One", "one", "small"}, other_{"t2", "Two", "two", "small"};
    std::unique_ptr<Sandboxes> sandboxes_;
    std::vector<std::string> gone_;
};

}  // namespace gb
