// SPDX-License-Identifier: Apache-2.0
#include "control/webhook_target.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace gb {
namespace {

namespace asio = boost::asio;

Status checked(const std::string& url) {
    asio::io_context io;
    Status out;
    asio::co_spawn(io, check_webhook_target(url), [&](const std::exception_ptr& failure, Status status) {
        if (failure) std::rethrow_exception(failure);
        out = std::move(status);
    });
    io.run();
    return out;
}

TEST(WebhookTarget, PrivateAddressesAreRefusedWithTheNameOfTheSetting) {
    for (const char* url : {"http://127.0.0.1/", "https://10.1.2.3:8443/hook", "http://169.254.169.254/latest",
                            "http://[::1]:80/", "http://[fd00::1]/", "http://[::ffff:192.168.0.1]/", "http://0.0.0.0/",
                            "http://localhost:9000/"}) {
        const Status status = checked(url);
        ASSERT_FALSE(status) << url;
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(status.error().message.find("[webhooks]"), std::string::npos);
        EXPECT_NE(status.error().message.find("allow_private"), std::string::npos);
    }
}

TEST(WebhookTarget, PublicAddressesAndNamesThatLeadNowherePass) {
    for (const char* url : {"https://1.1.1.1/hook", "http://[2606:4700::1111]/", "http://no-such-name.invalid/"})
        EXPECT_TRUE(checked(url)) << url;
}

}  // namespace
}  // namespace gb
