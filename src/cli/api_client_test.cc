// SPDX-License-Identifier: Apache-2.0
#include "cli/api_client.h"

#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "http/server.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;

// A server that answers every request with `handler`, on a thread of its own.
class ApiClientTest : public ::testing::Test {
  protected:
    void serve(http::Handler handler) {
        server_ = std::make_unique<http::Server>(io_.get_executor(), std::move(handler));
        const auto at = server_->listen({asio::ip::make_address("127.0.0.1"), 0});
        ASSERT_TRUE(at);
        address_ = {fmt::format("http://127.0.0.1:{}", at->port()), "key", ""};
        thread_ = std::thread([this] { io_.run(); });
    }
    void TearDown() override {
        asio::post(io_, [this] {
            server_->stop();
            io_.stop();
        });
        thread_.join();
    }

    asio::io_context io_;
    std::unique_ptr<http::Server> server_;
    std::thread thread_;
    ServerAddress address_;
};

TEST_F(ApiClientTest, AListIsReadToItsLastPage) {
    serve([](http::Exchange& e) -> asio::awaitable<void> {
        const std::string token = e.target.get("nextToken");
        EXPECT_EQ(e.target.get("state"), "paused");
        if (token.empty())
            co_await e.response.send(200, {{"X-Next-Token", "a&b"}}, "[1,2]");
        else if (token == "a&b")
            co_await e.response.send(200, {{"X-Next-Token", "c"}}, "[3]");
        else
            co_await e.response.send(200, {}, "[4]");
    });
    const auto all = call_api(address_, "GET", "/list?state=paused");
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(boost::json::serialize(*all), "[1,2,3,4]");
}

TEST_F(ApiClientTest, AnErrorOnALaterPageIsAnError) {
    serve([](http::Exchange& e) -> asio::awaitable<void> {
        if (e.target.get("nextToken").empty())
            co_await e.response.send(200, {{"X-Next-Token", "x"}}, "[1]");
        else
            co_await e.response.send(503, {}, R"({"code":503,"message":"later"})");
    });
    const auto all = call_api(address_, "GET", "/list");
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().message, "later");
}

}  // namespace
}  // namespace gb::cli
