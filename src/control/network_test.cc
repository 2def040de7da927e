// SPDX-License-Identifier: Apache-2.0
// Networks that are replaced, and whom that meets.
#include <algorithm>

#include <boost/asio/detached.hpp>
#include <boost/json.hpp>

#include "control/sandboxes_fixture.h"

namespace gb {
namespace {

class NetworkTest : public SandboxesTest {
  protected:
    void SetUp() override {
        sealer_ = std::make_shared<const Sealer>(random_bytes(32));
        SandboxesTest::SetUp();
    }
    static NetworkUpdate denying(const std::string& address) {
        return {{.deny_out = {address}}, R"({"denyOut":[")" + address + "\"]}"};
    }
    static NetworkUpdate through_proxy() {
        return {{.egress_proxy = net::ProxyRequest{"1.2.3.4:1080", "user", "the-password"}},
                R"({"egressProxy":{"address":"1.2.3.4:1080","username":"user"}})"};
    }
    awaitable<std::string> create() {
        CreateSandbox wanted = request();
        wanted.network.deny_out = {"9.9.9.9"};
        wanted.network_json = R"({"denyOut":["9.9.9.9"],"maskRequestHost":"x"})";
        auto view = co_await sandboxes_->create(team_, wanted);
        EXPECT_TRUE(view);
        co_return view ? view->record.id : std::string();
    }
    // What the machine has and what the store says, or "apart".
    std::string in_force(const std::string& id) {
        auto rows = store_->sandboxes();
        for (const SandboxRecord& row : *rows) {
            if (row.id != id) continue;
            auto wanted = network_of(row, sealer_.get());
            const bool memory = sandboxes_->get(team_, id)->record.deny_out == row.deny_out;
            if (!wanted || !memory || (node_.machines.contains(id) && node_.networks[id] != *wanted))
                return "apart";
            return wanted->deny_out.empty() ? "nothing" : wanted->deny_out[0];
        }
        return "gone";
    }
    // Begins a change and notes how it ended.
    void begin(const std::string& id, NetworkUpdate update, std::vector<std::optional<ErrorCode>>& ended) {
        asio::co_spawn(io_, sandboxes_->set_network(team_, id, std::move(update)),
                       [&](const std::exception_ptr&, Status status) {
                           ended.push_back(status ? std::nullopt : std::optional(status.error().code));
                       });
    }
    awaitable<void> tighten_soon(std::string id) {
        co_await sleep(10);
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, through_proxy()));
    }
    using Ended = std::vector<std::optional<ErrorCode>>;
};

TEST_F(NetworkTest, ReplacesEverythingOfTheWayOutAtOnce) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, denying("8.8.8.8")));
        EXPECT_EQ(in_force(id), "8.8.8.8");
        const auto view = sandboxes_->get(team_, id);
        EXPECT_EQ(view->record.network_json, R"({"maskRequestHost":"x","denyOut":["8.8.8.8"]})");
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, {}));
        EXPECT_EQ(in_force(id), "nothing");
        EXPECT_EQ(sandboxes_->get(team_, id)->record.network_json, R"({"maskRequestHost":"x"})");
        EXPECT_EQ(events(), (std::vector<std::string>{"created", "updated", "updated"}));
        auto logs = store_->logs({.sandbox_id = id});
        EXPECT_TRUE(logs && logs->back().message == "sandbox network rules replaced");
    });
}

TEST_F(NetworkTest, IsTheirTeamsAlone) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        EXPECT_EQ((co_await sandboxes_->set_network(other_, id, {})).error().code, ErrorCode::not_found);
        EXPECT_EQ((co_await sandboxes_->set_network(team_, "inone", {})).error().code, ErrorCode::not_found);
        EXPECT_EQ(in_force(id), "9.9.9.9");
        EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
        EXPECT_EQ((co_await sandboxes_->set_network(team_, id, {})).error().code, ErrorCode::not_found);
    });
}

TEST_F(NetworkTest, AMachineThatRefusesLeavesAllAsItWas) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        node_.network_error = Error(ErrorCode::invalid_argument, "no");
        EXPECT_EQ((co_await sandboxes_->set_network(team_, id, {})).error().code,
                  ErrorCode::invalid_argument);
        EXPECT_EQ(in_force(id), "9.9.9.9");
        EXPECT_EQ(events(), std::vector<std::string>{"created"});
    });
}

TEST_F(NetworkTest, WhatCannotBeStoredIsTakenBack) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        fail_changes();
        EXPECT_FALSE(co_await sandboxes_->set_network(team_, id, denying("8.8.8.8")));
        EXPECT_EQ(node_.networks[id].deny_out, std::vector<std::string>{"9.9.9.9"});
        EXPECT_EQ(in_force(id), "9.9.9.9");
        succeed_again();
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, denying("8.8.8.8")));
        EXPECT_EQ(in_force(id), "8.8.8.8");
    });
}

TEST_F(NetworkTest, OfSeveralAtOnceTheLastOneStays) {
    node_.network_delay_ms = 10;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        Ended ended;
        for (int i = 1; i <= 5; ++i) begin(id, denying("8.8.8." + std::to_string(i)), ended);
        while (ended.size() < 5) co_await sleep(5);
        EXPECT_EQ(ended, Ended(5, std::nullopt));
        EXPECT_EQ(in_force(id), "8.8.8.5");
        EXPECT_EQ(events().size(), 6U);
    });
}

TEST_F(NetworkTest, ATimeoutThatIsMovedMeanwhileIsNotLost) {
    node_.network_delay_ms = 20;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        Ended ended;
        begin(id, denying("8.8.8.8"), ended);
        EXPECT_TRUE(co_await sandboxes_->set_timeout(team_, id, 1000));
        begin(id, denying("8.8.4.4"), ended);
        EXPECT_TRUE(co_await sandboxes_->extend(team_, id, 2000));
        while (ended.size() < 2) co_await sleep(5);
        EXPECT_EQ(in_force(id), "8.8.4.4");
        EXPECT_EQ(store_->sandboxes()->at(0).ends_ms, sandboxes_->get(team_, id)->record.ends_ms);
    });
}

TEST_F(NetworkTest, OfAPausedOneIsInForceAtItsResume) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        node_.network_error = Error(ErrorCode::internal, "it must not be asked");
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, through_proxy()));
        open();  // over a restart
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
        EXPECT_EQ(node_.last_spec.network, through_proxy().network);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.network_json.find("the-password"), std::string::npos);
    });
}

TEST_F(NetworkTest, WaitsForAPauseAndForAResume) {
    node_.pause_delay_ms = node_.create_delay_ms = 30;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
        co_await sleep(5);
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, denying("8.8.8.8")));
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        EXPECT_EQ(in_force(id), "8.8.8.8");
        asio::co_spawn(io_, sandboxes_->connect(team_, id, 60), asio::detached);
        co_await sleep(5);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::resuming);
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, denying("8.8.4.4")));
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_EQ(in_force(id), "8.8.4.4");
    });
}

TEST_F(NetworkTest, APauseAndAResumeThatBeginMeanwhileComeAfterIt) {
    node_.network_delay_ms = 30;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        Ended ended;
        begin(id, denying("8.8.8.8"), ended);
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        EXPECT_EQ(ended, Ended{std::nullopt});
        EXPECT_EQ(in_force(id), "8.8.8.8");
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
        EXPECT_EQ(in_force(id), "8.8.8.8");
        // Of a paused one the store is what takes time.
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        begin(id, denying("8.8.4.4"), ended);
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
        while (ended.size() < 2) co_await sleep(5);
        EXPECT_EQ(ended[1], std::nullopt);
        EXPECT_EQ(in_force(id), "8.8.4.4");
    });
}

TEST_F(NetworkTest, PausesThatMeetAChangeAllSucceed) {
    node_.network_delay_ms = 20;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        Ended ended, pauses;
        begin(id, denying("8.8.8.8"), ended);
        for (int i = 0; i < 3; ++i)
            asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory),
                           [&](const std::exception_ptr&, Status status) {
                               pauses.push_back(status ? std::nullopt : std::optional(status.error().code));
                           });
        while (pauses.size() < 3) co_await sleep(5);
        EXPECT_EQ(std::ranges::count(pauses, std::optional<ErrorCode>()), 3);
        EXPECT_EQ(in_force(id), "8.8.8.8");
    });
}

TEST_F(NetworkTest, AKillMeanwhileLeavesNothing) {
    run([&]() -> awaitable<void> {
        for (const bool slow_machine : {true, false}) {
            node_.network_delay_ms = slow_machine ? 30 : 0;
            node_.destroy_delay_ms = slow_machine ? 5 : 30;
            const std::string id = co_await create();
            Ended ended;
            begin(id, denying("8.8.8.8"), ended);
            if (slow_machine) co_await sleep(5);
            EXPECT_TRUE(co_await sandboxes_->kill(team_, id));
            while (ended.empty()) co_await sleep(5);
            EXPECT_EQ(in_force(id), "gone");
            if (slow_machine) EXPECT_EQ(ended[0], ErrorCode::not_found);
        }
        // While it is being killed it is not found.
        const std::string id = co_await create();
        asio::co_spawn(io_, sandboxes_->kill(team_, id), asio::detached);
        co_await sleep(5);
        EXPECT_EQ((co_await sandboxes_->set_network(team_, id, {})).error().code, ErrorCode::not_found);
    });
}

TEST_F(NetworkTest, AnEndThatWasMovedWhileItsPauseWaitedCounts) {
    node_.network_delay_ms = 300;
    run([&]() -> awaitable<void> {
        CreateSandbox wanted = request(1);
        wanted.auto_pause = true;
        auto view = co_await sandboxes_->create(team_, wanted);
        EXPECT_TRUE(view);
        const std::string id = view->record.id;
        co_await sleep(800);
        Ended ended;
        begin(id, denying("8.8.8.8"), ended);  // the end comes while this is under way
        EXPECT_TRUE(co_await sandboxes_->set_timeout(team_, id, 60));
        co_await sleep(400);
        EXPECT_TRUE(sandboxes_->is_running(id));
    });
}

TEST_F(NetworkTest, AfterARestartMachinesLearnThePasswordsAgain) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await create(), plain = co_await create();
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, through_proxy()));
        node_.networks.clear();
        open();
        co_await sleep(50);
        EXPECT_EQ(node_.networks[id], through_proxy().network);
        EXPECT_FALSE(node_.networks.contains(plain)) << "its machine knows all of it";
        // With another key it runs on, and what needs the password says so.
        sealer_ = std::make_shared<const Sealer>(random_bytes(32));
        node_.networks.clear();
        open();
        co_await sleep(50);
        EXPECT_FALSE(node_.networks.contains(id));
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
        auto woken = co_await sandboxes_->connect(team_, id, 60);
        EXPECT_EQ(woken.error().code, ErrorCode::failed_precondition);
        EXPECT_NE(woken.error().message.find("password"), std::string::npos);
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, {}));
        EXPECT_TRUE(co_await sandboxes_->connect(team_, id, 60));
    });
}

TEST_F(NetworkTest, ForksHaveTheNetworkOfTheirSourceAsItIsWhenTheyStart) {
    node_.snapshot_delay_ms = 40;
    run([&]() -> awaitable<void> {
        const std::string id = co_await create();
        asio::co_spawn(io_, tighten_soon(id), asio::detached);
        auto forks = co_await sandboxes_->fork(team_, id, 1, 60);
        EXPECT_TRUE(forks && forks->at(0));
        const SandboxRecord fork = forks->at(0)->record;
        EXPECT_EQ(node_.networks[fork.id], through_proxy().network);
        EXPECT_EQ(network_of(fork, sealer_.get()), through_proxy().network);
        EXPECT_EQ(fork.network_json, sandboxes_->get(team_, id)->record.network_json);
        // Later changes are each one's own.
        EXPECT_TRUE(co_await sandboxes_->set_network(team_, id, denying("8.8.8.8")));
        EXPECT_EQ(node_.networks[fork.id], through_proxy().network);
    });
}

}  // namespace
}  // namespace gb
