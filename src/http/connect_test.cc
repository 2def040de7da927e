// SPDX-License-Identifier: Apache-2.0
#include "http/connect.h"

#include <gtest/gtest.h>

namespace gb::http {
namespace {

using namespace std::string_literals;

TEST(Connect, FramesOfTheContract) {
    EXPECT_EQ(end_stream(), "\x02\0\0\0\x02{}"s);
    EXPECT_EQ(envelope(0, "abc"), "\0\0\0\0\x03"s "abc");
    EXPECT_EQ(connect_error_body(Error(ErrorCode::not_found, "process with pid 9 not found")),
              R"({"code":"not_found","message":"process with pid 9 not found"})");
}

TEST(Connect, ReaderReassemblesByteByByte) {
    EnvelopeReader reader(1024);
    std::string stream = envelope(0, "one") + envelope(0, "") + end_stream();
    std::vector<std::string> got;
    for (char c : stream) {
        reader.feed(std::string_view(&c, 1));
        for (;;) {
            auto frame = reader.next();
            ASSERT_TRUE(frame);
            if (!*frame) break;
            got.push_back(std::to_string((*frame)->flags) + (*frame)->payload);
        }
    }
    EXPECT_EQ(got, (std::vector<std::string>{"0one", "0", "2{}"}));
    EXPECT_TRUE(reader.empty());
}

TEST(Connect, ReaderRefusesAFrameThatIsTooLarge) {
    EnvelopeReader reader(16);
    reader.feed("\0\0\0\0\x11"s);
    auto frame = reader.next();
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code, ErrorCode::too_large);
}

}  // namespace
}  // namespace gb::http
