// SPDX-License-Identifier: Apache-2.0
// The client against an agent that is slow, and one that is stuck; in a network namespace of its own.
#include "node/agent_client.h"

#include <atomic>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "http/server.h"
#include "net/netns.h"

namespace gb {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

class AgentClientTest : public testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
        auto world = net::NetnsScope::enter_new();
        ASSERT_TRUE(world) << world.error().message;
        world_.emplace(*std::move(world));
        auto holder = net::current_netns();
        ASSERT_TRUE(holder);
        netns_ = *std::move(holder);
        ASSERT_TRUE(run_checked({"ip", "link", "set", "lo", "up"}));
        ASSERT_TRUE(run_checked({"ip", "address", "add", fmt::format("{}/32", kGuestAddress), "dev", "lo"}));
        server_ = std::make_unique<http::Server>(io_.get_executor(), [this](http::Exchange& exchange) -> asio::awaitable<void> {
            ++asked_;
            asio::steady_timer timer(co_await asio::this_coro::executor, answer_after_);
            co_await timer.async_wait(asio::use_awaitable);
            co_await exchange.response.send(200, {}, "done");
        });
        ASSERT_TRUE(server_->listen({asio::ip::make_address(kGuestAddress), kAgentPort}));
        thread_ = std::thread([this] { io_.run(); });
    }
    void TearDown() override {
        io_.stop();
        if (thread_.joinable()) thread_.join();
    }
    AgentClient client(Signs signs) {
        auto open = [this]() -> Result<UniqueFd> {
            GB_TRY_ASSIGN(const net::NetnsScope inside, net::NetnsScope::enter(netns_.get()));
            UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            if (!fd) return fail_errno("socket");
            return fd;
        };
        return AgentClient(open, std::move(signs));
    }

    std::optional<net::NetnsScope> world_;
    UniqueFd netns_;
    asio::io_context io_{1};
    std::unique_ptr<http::Server> server_;
    std::thread thread_;
    std::atomic<int> asked_ = 0;
    std::chrono::milliseconds answer_after_ = 0ms;
};

TEST_F(AgentClientTest, AGuestThatGetsOnIsWaitedFor) {
    answer_after_ = 1s;
    const AgentClient slow = client([](StallLimit& limit) -> Status {
        limit.moved();
        return {};
    });
    auto answer = slow.request(kAgentPort, "POST", "/init", "{}", {100ms, 1h});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(*answer, "done");
    EXPECT_EQ(asked_, 1);
}

TEST_F(AgentClientTest, AGuestInWhichNothingMovesIsNot) {
    answer_after_ = 1h;
    auto answer = client({}).request(kAgentPort, "POST", "/init", "{}", {100ms, 1h});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::deadline_exceeded);
    EXPECT_EQ(answer.error().message, "POST /init: nothing moved for 0.1 s");
    auto begun = client({}).start("true", "root", "", {100ms, 1h});
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, ErrorCode::deadline_exceeded);
}

TEST_F(AgentClientTest, NobodyWaitsForAMachineThatHasEnded) {
    answer_after_ = 1h;
    const AgentClient gone = client([](StallLimit&) -> Status { return fail(ErrorCode::unavailable, "it has ended"); });
    auto answer = gone.request(kAgentPort, "POST", "/init", "{}", {100ms, 1h});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "it has ended");
    EXPECT_FALSE(gone.wait_ready({1h, 1h}));
}

TEST_F(AgentClientTest, AnAgentThatNeedsLongForItsFirstAnswerIsReady) {
    answer_after_ = 3s;  // longer than the first try
    const AgentClient slow = client([](StallLimit& limit) -> Status {
        limit.moved();
        return {};
    });
    Status ready = slow.wait_ready({1s, 1h});
    EXPECT_TRUE(ready) << ready.error().message;
    EXPECT_GT(asked_, 1);
}

}  // namespace
}  // namespace gb
