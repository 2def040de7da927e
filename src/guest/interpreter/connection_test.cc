// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/connection.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(Connection, FileAndEndpointsNameTheSameSockets) {
    Connection connection{.folder = "/run/glovebox/kernels/abc", .key = "secret"};
    auto file = boost::json::parse(connection_file(connection)).as_object();
    EXPECT_EQ(file["transport"], "ipc");
    EXPECT_EQ(file["signature_scheme"], "hmac-sha256");
    EXPECT_EQ(file["key"], "secret");
    // With `ipc` a kernel listens on "<ip>-<port>".
    auto kernel_listens = [&](const char* port) {
        return "ipc://" + std::string(file["ip"].as_string()) + "-" + std::to_string(file[port].as_int64());
    };
    EXPECT_EQ(endpoint(connection, Channel::shell), kernel_listens("shell_port"));
    EXPECT_EQ(endpoint(connection, Channel::iopub), kernel_listens("iopub_port"));
    EXPECT_EQ(endpoint(connection, Channel::control), kernel_listens("control_port"));
}

}  // namespace
}  // namespace gb::interpreter
