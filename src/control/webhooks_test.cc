// SPDX-License-Identifier: Apache-2.0
#include "control/webhooks.h"

#include <algorithm>
#include <functional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/error_tuple.h"
#include "base/eventually.h"
#include "base/file.h"
#include "base/ids.h"
#include "control/events.h"
#include "control/store_fixture.h"
#include "http/server.h"

namespace gb {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;

struct Request {
    http::RequestHead head;
    std::string body;
};

// A store, a receiver and the deliveries between them, on one thread.
class WebhooksTest : public StoreFixture {
  protected:
    void SetUp() override {
        ASSERT_NO_FATAL_FAILURE(StoreFixture::SetUp());
        ASSERT_TRUE(store_->add_team({"t1", "One", "one", "pro"}));
        receiver_ = std::make_unique<http::Server>(
            io_.get_executor(),
            [this](http::Exchange& exchange) -> awaitable<void> { co_await receive(exchange); });
        auto bound = receiver_->listen({asio::ip::make_address("127.0.0.1"), 0});
        ASSERT_TRUE(bound);
        port_ = bound->port();
        options_.sender.allow_private = true;
        options_.first_retry = milliseconds(20);
    }
    void TearDown() override {
        webhooks_.reset();
        readers_.join();
        receiver_.reset();
        io_.restart();
        io_.poll();
        StoreFixture::TearDown();
    }

    void start() {
        webhooks_ = std::make_unique<Webhooks>(io_.get_executor(), *store_, readers_, options_);
        webhooks_->start();
    }
    // Runs everything until `is_true`.
    void until(const std::function<bool()>& is_true) {
        io_.restart();
        auto so = [&] { return io_.run_one_for(milliseconds(20)), is_true(); };
        EXPECT_TRUE(test::eventually(so, milliseconds(0)));
    }

    Webhook hook(const std::string& id, const std::string& path, bool enabled = true) {
        Webhook out{.id = id,
                    .team_id = "t1",
                    .name = id,
                    .url = url(path),
                    .secret = "secret of " + id,
                    .enabled = enabled};
        out.events = {"sandbox.lifecycle.created", "sandbox.lifecycle.killed"};
        EXPECT_TRUE(store_->put_webhook(out));
        return out;
    }
    std::string url(const std::string& path) const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }
    void happens(const std::string& sandbox, bool killed = false) {
        SandboxRecord record{.id = sandbox, .team_id = "t1", .template_id = "base"};
        ASSERT_TRUE(store_->commit(
            {.events = {killed ? killed_event(record, nullptr, "asked") : created_event(record)}}));
    }
    // All that is still to be delivered, now or later, to webhooks that are enabled.
    std::vector<Delivery> waiting() { return *store_->due_deliveries({.now_ms = INT64_MAX}); }
    std::size_t received(const std::string& path) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            requests_, [&](const Request& request) { return request.head.target == path; }));
    }

    awaitable<void> receive(http::Exchange& exchange) {
        const std::string path = exchange.target.path;
        auto body = co_await exchange.body.read_all(1 << 20);
        if (!body) co_return;
        requests_.push_back({exchange.head, *body});
        if (path == "/slow" && held_) {
            most_held_ = std::max(most_held_, ++holding_);
            asio::steady_timer timer(io_);
            while (held_) {
                timer.expires_after(milliseconds(10));
                co_await timer.async_wait(kErrorTuple);
            }
            --holding_;
        }
        int status = 204;
        if (path == "/moved") status = 302;
        if (path == "/fails" && failures_ > 0) {
            --failures_;
            status = 500;
        }
        http::Headers headers;
        if (status == 302) headers.add("Location", url("/elsewhere"));
        std::string answer = path == "/chatty" ? std::string(4 << 20, 'x') : "";
        if (path == "/chatty") status = 200;
        co_await exchange.response.send(status, std::move(headers), answer);
    }

    asio::io_context io_{1};
    asio::thread_pool readers_{2};
    std::unique_ptr<http::Server> receiver_;
    std::uint16_t port_ = 0;
    WebhookOptions options_;
    std::unique_ptr<Webhooks> webhooks_;

    std::vector<Request> requests_;
    int failures_ = 0;
    bool held_ = true;  // what /slow does with its requests
    int holding_ = 0, most_held_ = 0;
};

TEST_F(WebhooksTest, ADeliveryIsSignedAndSaysWhatItIs) {
    const Webhook webhook = hook("w1", "/hook?x=1");
    start();
    until([&] { return io_.poll() == 0; });
    happens("i1");  // nothing was due before: this wakes it
    until([&] { return waiting().empty(); });
    ASSERT_EQ(requests_.size(), 1U);
    const auto& [head, body] = requests_[0];
    EXPECT_EQ(head.method, "POST");
    EXPECT_EQ(head.target, "/hook?x=1");
    EXPECT_EQ(head.headers.get("Content-Type"), "application/json");
    EXPECT_EQ(head.headers.get("e2b-webhook-id"), "w1");
    EXPECT_EQ(head.headers.get("e2b-delivery-id").size(), 36U);
    EXPECT_EQ(head.headers.get("e2b-signature-version"), "v1");
    EXPECT_EQ(head.headers.get("e2b-signature"), base64url_encode(sha256(webhook.secret + body)));
    const auto events = *store_->events({.team_id = "t1"});
    EXPECT_EQ(body, event_json(events.at(0)));
}

TEST_F(WebhooksTest, AFailureIsTriedAgainWithTheSameId) {
    hook("w1", "/fails");
    failures_ = 2;
    start();
    happens("i1");
    until([&] { return waiting().empty(); });
    ASSERT_EQ(requests_.size(), 3U);
    EXPECT_EQ(requests_[0].head.headers.get("e2b-delivery-id"),
              requests_[2].head.headers.get("e2b-delivery-id"));
    EXPECT_EQ(requests_[0].body, requests_[2].body);
}

TEST_F(WebhooksTest, AReceiverThatIsAwayGetsItWhenItIsBack) {
    hook("w1", "/hook");
    receiver_->stop();
    start();
    happens("i1");
    until([&] { return waiting().at(0).attempts >= 2; });
    EXPECT_TRUE(requests_.empty());
    receiver_ = std::make_unique<http::Server>(
        io_.get_executor(),
        [this](http::Exchange& exchange) -> awaitable<void> { co_await receive(exchange); });
    ASSERT_TRUE(receiver_->listen({asio::ip::make_address("127.0.0.1"), port_}));
    until([&] { return waiting().empty(); });
    EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(WebhooksTest, WhatFailsForTooLongIsGivenUp) {
    hook("w1", "/fails");
    failures_ = 100;
    options_.most_attempts = 3;
    start();
    happens("i1");
    until([&] { return waiting().empty(); });
    EXPECT_EQ(requests_.size(), 3U);
    const auto kept = store_->deliveries("w1", 10, INT64_MAX);
    ASSERT_EQ(kept->size(), 1U);
    EXPECT_EQ(kept->at(0).next_ms, std::nullopt);
    EXPECT_EQ(kept->at(0).attempts, 3);
    EXPECT_EQ(kept->at(0).last_error, "the receiver answered 500");
}

TEST_F(WebhooksTest, ASlowReceiverHoldsUpNoOther) {
    hook("slow", "/slow");
    hook("quick", "/quick");
    start();
    for (int i = 0; i < 40; ++i) happens("i" + std::to_string(i));
    until([&] { return received("/quick") == 40; });
    EXPECT_EQ(received("/slow"), 2U);
    EXPECT_EQ(most_held_, 2);
    held_ = false;
    until([&] { return waiting().empty(); });
    EXPECT_EQ(received("/slow"), 40U);
    EXPECT_EQ(received("/quick"), 40U);
}

TEST_F(WebhooksTest, OneTeamHoldsUpNoOther) {
    ASSERT_TRUE(store_->add_team({"t2", "Two", "two", "pro"}));
    for (int i = 0; i < 5; ++i) hook("slow" + std::to_string(i), "/slow");
    Webhook other{.id = "other", .team_id = "t2", .url = url("/quick"), .secret = "s", .created_ms = 1};
    other.events = {"sandbox.lifecycle.created"};
    ASSERT_TRUE(store_->put_webhook(other));
    options_.at_once = 4;
    options_.per_team = 3;
    for (int i = 0; i < 4; ++i)
        happens("i" + std::to_string(i));  // twenty deliveries, all older than the other's
    SandboxRecord record{.id = "j1", .team_id = "t2", .template_id = "base"};
    ASSERT_TRUE(store_->commit({.events = {created_event(record)}}));
    start();
    until([&] { return received("/quick") == 1; });
    EXPECT_LE(most_held_, 3);
    held_ = false;
    until([&] { return waiting().empty(); });
    EXPECT_EQ(received("/slow"), 20U);
}

TEST_F(WebhooksTest, OfOneSandboxOneComesAfterTheOther) {
    hook("slow", "/slow");
    start();
    happens("i1");
    happens("i1", true);
    happens("i2");
    until([&] { return holding_ == 2; });  // i1 and i2: the end of i1 waits for its beginning
    held_ = false;
    until([&] { return waiting().empty(); });
    ASSERT_EQ(requests_.size(), 3U);
    EXPECT_NE(requests_[2].body.find("killed"), std::string::npos);
}

TEST_F(WebhooksTest, AStopGivesUpWhatIsUnderWayAndTheNextStartGoesOn) {
    hook("slow", "/slow");
    start();
    happens("i1");
    until([&] { return holding_ == 1; });
    webhooks_.reset();  // returns although nobody answers
    ASSERT_EQ(waiting().size(), 1U);
    EXPECT_EQ(waiting()[0].attempts, 0);
    held_ = false;
    happens("i2");  // while nobody delivers
    start();
    until([&] { return waiting().empty(); });
    ASSERT_EQ(requests_.size(), 3U);
    const std::string first(
        requests_[0].head.headers.get("e2b-delivery-id"));  // its second attempt may meet i2
    EXPECT_EQ(
        std::ranges::count_if(
            requests_, [&](const Request& r) { return r.head.headers.get("e2b-delivery-id") == first; }),
        2);
}

TEST_F(WebhooksTest, ADisabledWebhookGetsNothing) {
    Webhook off = hook("off", "/off");
    hook("on", "/on");
    happens("i1");
    off.enabled = false;
    ASSERT_TRUE(store_->put_webhook(off));  // what was on its way waits
    start();
    happens("i2");
    until([&] { return received("/on") == 2 && waiting().empty(); });
    EXPECT_EQ(received("/off"), 0U);
    off.enabled = true;
    ASSERT_TRUE(store_->put_webhook(off));
    until([&] { return received("/off") == 1; });  // what happened meanwhile was not for it
}

TEST_F(WebhooksTest, PrivateAddressesAreRefusedUnlessAllowed) {
    Webhook webhook = hook("w1", "/hook");
    options_.sender.allow_private = false;
    for (const char* host :
         {"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"}) {
        webhook.url = "http://" + std::string(host) + ":" + std::to_string(port_) + "/hook";
        const Attempt attempt =
            WebhookSender(options_.sender).send({.id = "d", .webhook = webhook, .event = {}});
        EXPECT_EQ(attempt.result, Attempt::Result::failed) << host;
        EXPECT_EQ(attempt.reason, "the name leads to an address that is not public") << host;
    }
    start();
    happens("i1");
    until([&] { return waiting().at(0).attempts >= 2; });
    EXPECT_TRUE(requests_.empty());
}

TEST(WebhookSender, OtherProtocolsAreRefused) {
    for (const char* url :
         {"file:///etc/hostname", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "telnet://127.0.0.1/"}) {
        const Attempt attempt =
            WebhookSender({.allow_private = true}).send({.id = "d", .webhook = {.url = url}, .event = {}});
        EXPECT_EQ(attempt.result, Attempt::Result::failed) << url;
        EXPECT_EQ(attempt.reason, "Unsupported protocol") << url;
    }
}

TEST_F(WebhooksTest, ARedirectIsAFailureAndIsNotFollowed) {
    hook("w1", "/moved");
    start();
    happens("i1");
    until([&] { return received("/moved") == 2; });
    EXPECT_EQ(received("/elsewhere"), 0U);
}

TEST_F(WebhooksTest, ALongAnswerIsNotReadToItsEnd) {
    hook("w1", "/chatty");
    start();
    happens("i1");
    until([&] { return waiting().empty(); });
    EXPECT_EQ(requests_.size(), 1U);
}

TEST(WebhookSchedule, DoublesUpToTheLongest) {
    const WebhookOptions options;
    EXPECT_EQ(retry_delay(options, 1, 0.5), milliseconds(1'000));
    EXPECT_EQ(retry_delay(options, 2, 0.5), milliseconds(2'000));
    EXPECT_EQ(retry_delay(options, 3, 0), milliseconds(3'200));
    EXPECT_EQ(retry_delay(options, 12, 0.5), milliseconds(2'048'000));
    EXPECT_EQ(retry_delay(options, 13, 0.5), milliseconds(3'600'000));
    EXPECT_EQ(retry_delay(options, 2'000'000'000, 0.5), milliseconds(3'600'000));
}

TEST(WebhookSchedule, EndsByNumberOrByAge) {
    const WebhookOptions options;
    constexpr std::int64_t kDay = 24 * 3'600'000;
    EXPECT_FALSE(is_given_up(options, 19, 0, kDay - 1));
    EXPECT_TRUE(is_given_up(options, 20, 0, 1));
    EXPECT_TRUE(is_given_up(options, 1, 0, kDay));
}

}  // namespace
}  // namespace gb
