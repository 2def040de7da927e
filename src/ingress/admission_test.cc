// SPDX-License-Identifier: Apache-2.0
// Who may pass, who is woken, what the service sees (contract 7.3, 7.4).
#include "ingress/proxy_fixture.h"

#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/file_signature.h"

namespace gb::ingress {
namespace {

class AdmissionTest : public ProxyTest {
  protected:
    void SetUp() override {
        ProxyTest::SetUp();
        serve([this](Exchange& e) -> awaitable<void> {
            seen_ = e.head.headers;
            co_await e.response.send(200, {}, "served");
        });
    }
    awaitable<ClientConnection::Response> ask(const std::string& id, std::initializer_list<http::Headers::Item> more = {},
                                              int port = 0, std::string path = "/") {
        auto connection = co_await client();
        http::RequestHead request = head("GET", std::move(path), id, port);
        for (const auto& [name, value] : more) request.headers.set(name, value);
        auto response = co_await connection.request(std::move(request), "", 100'000);
        co_return *std::move(response);
    }
    static CreateSandbox closed() {
        CreateSandbox out;
        out.public_traffic = false;
        return out;
    }
    static CreateSandbox light_sleeper(int timeout_s = 60) {
        CreateSandbox out;
        out.auto_pause = out.auto_resume = true;
        out.timeout_s = timeout_s;
        return out;
    }
    awaitable<void> pause(const std::string& id) {
        EXPECT_TRUE(co_await sandboxes_->pause(team_, id, PauseMode::with_memory));
    }
    http::Headers seen_;
};

TEST_F(AdmissionTest, PrivatePortsAskForTheTrafficTokenAndDoNotPassItOn) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(closed());
        const std::string token = sandboxes_->get(team_, id)->traffic_token;
        auto missing = co_await ask(id);
        EXPECT_EQ(missing.head.status, 403);
        EXPECT_NE(missing.body.find("Token header 'e2b-traffic-access-token' is missing"), std::string::npos);
        EXPECT_NE(missing.body.find("\"code\":403"), std::string::npos);
        auto wrong = co_await ask(id, {{"e2b-traffic-access-token", std::string(64, '0')}});
        EXPECT_EQ(wrong.head.status, 403);
        EXPECT_NE(wrong.body.find("is invalid"), std::string::npos);
        EXPECT_EQ(wrong.body.find(token), std::string::npos);
        auto page = co_await ask(id, {{"User-Agent", "Mozilla/5.0 (X11)"}});
        EXPECT_EQ(page.head.status, 403);
        EXPECT_NE(page.body.find("<title>Missing Traffic Access Token</title>"), std::string::npos);
        EXPECT_NE(page.body.find(id), std::string::npos);
        auto good = co_await ask(id, {{"E2B-Traffic-Access-Token", token}});
        EXPECT_EQ(good.body, "served");
        EXPECT_FALSE(seen_.has("e2b-traffic-access-token"));
        // The access token is another one.
        EXPECT_EQ((co_await ask(id, {{"e2b-traffic-access-token", sandboxes_->get(team_, id)->access_token}})).head.status,
                  403);
    });
}

TEST_F(AdmissionTest, TheAgentNeverAsksForTheTrafficToken) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(closed());
        // The agent's port is closed here: what counts is that the token was not asked for.
        EXPECT_EQ((co_await ask(id, {}, kAgentPort, "/health")).head.status, 502);
    });
}

TEST_F(AdmissionTest, AMaskReplacesTheHostForServices) {
    run([&]() -> awaitable<void> {
        CreateSandbox masked;
        masked.mask_request_host = "localhost:${PORT}";
        const std::string id = co_await sandbox(masked);
        co_await ask(id);
        EXPECT_EQ(seen_.get("Host"), "localhost:" + std::to_string(service_port_));
        EXPECT_EQ(seen_.get("X-Forwarded-Host"), "127.0.0.1");
        const std::string plain = co_await sandbox();
        co_await ask(plain);
        EXPECT_EQ(seen_.get("Host"), "127.0.0.1");
    });
}

TEST_F(AdmissionTest, TrafficWakesASandboxThatAskedForIt) {
    node_.create_delay_ms = 30;
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(light_sleeper());
        co_await pause(id);
        EXPECT_EQ((co_await ask(id)).body, "served");
        EXPECT_TRUE(sandboxes_->is_running(id));
        EXPECT_GT(sandboxes_->get(team_, id)->record.ends_ms, now_ms() + 250'000);
    });
}

TEST_F(AdmissionTest, ASandboxWithoutThatPolicyStaysAsleep) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        co_await pause(id);
        auto refused = co_await ask(id);
        EXPECT_EQ(refused.head.status, 502);
        EXPECT_NE(refused.body.find("The sandbox was not found"), std::string::npos);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
    });
}

TEST_F(AdmissionTest, NobodyWakesWhatTheyCouldNotUse) {
    run([&]() -> awaitable<void> {
        CreateSandbox request = light_sleeper();
        request.public_traffic = false;
        const std::string id = co_await sandbox(request);
        co_await pause(id);
        EXPECT_EQ((co_await ask(id)).head.status, 403);
        EXPECT_EQ((co_await ask(id, {{"e2b-traffic-access-token", "x"}})).head.status, 403);
        EXPECT_EQ((co_await ask(id, {}, kAgentPort, "/health")).head.status, 502);
        EXPECT_EQ((co_await ask(id, {{"X-Access-Token", "x"}}, kAgentPort, "/health")).head.status, 502);
        const auto missing = co_await ask(id, {}, kAgentPort, "/files?path=a");
        EXPECT_EQ(missing.head.status, 403);
        EXPECT_NE(missing.body.find("X-Access-Token"), std::string::npos);
        EXPECT_EQ((co_await ask(id, {{"X-Access-Token", "x"}}, kAgentPort, "/files?path=a")).head.status, 403);
        EXPECT_EQ((co_await ask(id, {}, kAgentPort, "/files?path=a&signature=v1_x")).head.status, 403);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        co_await ask(id, {{"X-Access-Token", sandboxes_->get(team_, id)->access_token}}, kAgentPort, "/health");
        EXPECT_TRUE(sandboxes_->is_running(id));
        co_await pause(id);
        EXPECT_EQ((co_await ask(id, {{"e2b-traffic-access-token", sandboxes_->get(team_, id)->traffic_token}})).body,
                  "served");
    });
}

TEST_F(AdmissionTest, ASignatureOfItsTokenWakesASandboxAndAnExpiredOneDoesNot) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(light_sleeper());
        const std::string token = sandboxes_->get(team_, id)->access_token;
        auto signed_for = [&](std::optional<std::int64_t> until) {
            std::string target = "/files?path=a&signature=" +
                                 http::percent_encode(sign_url("a", FileOperation::read, "", token, until));
            if (until) target += "&signature_expiration=" + std::to_string(*until);
            return target;
        };
        co_await pause(id);
        EXPECT_EQ((co_await ask(id, {}, kAgentPort, signed_for(5))).head.status, 403);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
        co_await ask(id, {}, kAgentPort, signed_for(now_ms() / 1000 + 60));
        EXPECT_TRUE(sandboxes_->is_running(id));
    });
}

TEST_F(AdmissionTest, RequestsDuringAPauseWaitForItsEnd) {
    node_.pause_delay_ms = 60;
    run([&]() -> awaitable<void> {
        const std::string deaf = co_await sandbox(), light = co_await sandbox(light_sleeper());
        for (const std::string& id : {deaf, light})
            asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
        asio::steady_timer timer(io_, std::chrono::milliseconds(10));
        co_await timer.async_wait(asio::use_awaitable);
        EXPECT_EQ((co_await ask(light)).body, "served");
        EXPECT_EQ((co_await ask(deaf)).head.status, 502);
    });
}

TEST_F(AdmissionTest, WhoMayNotWakeItMayNotDuringAPauseEither) {
    node_.pause_delay_ms = 60;
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(light_sleeper());
        asio::co_spawn(io_, sandboxes_->pause(team_, id, PauseMode::with_memory), asio::detached);
        asio::steady_timer timer(io_, std::chrono::milliseconds(10));
        co_await timer.async_wait(asio::use_awaitable);
        EXPECT_EQ((co_await ask(id, {{"X-Access-Token", "wrong"}}, kAgentPort, "/health")).head.status, 502);
        EXPECT_EQ(sandboxes_->get(team_, id)->record.state, SandboxState::paused);
    });
}

TEST_F(AdmissionTest, AWakeThatFailsSaysSoAndNothingOfTheMachine) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox(light_sleeper());
        co_await pause(id);
        node_.create_error = Error(ErrorCode::unavailable, "no memory on 10.1.2.3");
        auto refused = co_await ask(id);
        EXPECT_EQ(refused.head.status, 503);
        EXPECT_EQ(refused.body.find("10.1.2.3"), std::string::npos);
        EXPECT_NE(refused.body.find(id), std::string::npos);
    });
}

TEST_F(AdmissionTest, AServiceThatIsJustStartingIsWaitedFor) {
    run([&]() -> awaitable<void> {
        const std::string id = co_await sandbox();
        const int port = service_port_;
        service_.reset();
        asio::steady_timer timer(io_, std::chrono::milliseconds(120));
        timer.async_wait([&](const boost::system::error_code&) {
            service_ = std::make_unique<http::Server>(io_.get_executor(), [](Exchange& e) -> awaitable<void> {
                co_await e.response.send(200, {}, "late");
            });
            auto bound = service_->listen({asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)});
            EXPECT_TRUE(bound);
        });
        EXPECT_EQ((co_await ask(id, {}, port)).body, "late");
    });
}

}  // namespace
}  // namespace gb::ingress
