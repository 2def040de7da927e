// SPDX-License-Identifier: Apache-2.0
#include "control/webhook_target.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace gb {
namespace {

namespace asio = boost::asio;

Result<std::string> checked(const std::string& url, PrivateTargets rule = PrivateTargets::refused) {
    asio::io_context io;
    Result<std::string> out;
    asio::co_spawn(io, check_webhook_target(url, rule),
                   [&](const std::exception_ptr& failure, Result<std::string> answer) {
                       if (failure) std::rethrow_exception(failure);
                       out = std::move(answer);
                   });
    io.run();
    return out;
}

TEST(WebhookTarget, PrivateAddressesAreRefusedWithTheNameOfTheSetting) {
    for (const char* url : {"http://127.0.0.1/", "https://10.1.2.3:8443/hook", "http://169.254.169.254/latest",
                            "http://[::1]:80/", "http://[fd00::1]/", "http://[::ffff:192.168.0.1]/", "http://0.0.0.0/",
                            "http://localhost:9000/"}) {
        const auto status = checked(url);
        ASSERT_FALSE(status) << url;
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(status.error().message.find("[webhooks]"), std::string::npos);
        EXPECT_NE(status.error().message.find("allow_private"), std::string::npos);
        EXPECT_EQ(checked(url, PrivateTargets::allowed), "") << url;
    }
}

TEST(WebhookTarget, PublicAddressesPass) {
    for (const char* url : {"https://1.1.1.1/hook", "http://[2606:4700::1111]/"}) EXPECT_EQ(checked(url), "") << url;
}

// It may lead somewhere later, so it is taken; but nobody should have to find out by himself.
TEST(WebhookTarget, ANameThatLeadsNowhereIsSaid) {
    for (const PrivateTargets rule : {PrivateTargets::refused, PrivateTargets::allowed}) {
        const auto said = checked("http://no-such-name.invalid/", rule);
        ASSERT_TRUE(said.has_value()) << said.error().message;
        EXPECT_NE(said->find("'no-such-name.invalid' cannot be resolved"), std::string::npos) << *said;
    }
}

}  // namespace
}  // namespace gb
