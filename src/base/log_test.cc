// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace gb::log {
namespace {

TEST(Log, QuotesEveryByteSafely) {
    EXPECT_EQ(json_quote("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
    EXPECT_EQ(json_quote("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
    EXPECT_EQ(json_quote("\xff\xfe"), R"("\ufffd\ufffd")");
    EXPECT_EQ(json_quote("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // a surrogate is not UTF-8
}

TEST(Log, OneLineOneObject) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    set_output(fds[1]);
    info("hello", {{"n", 3}, {"s", "x\ny"}});
    set_output(2);
    char buffer[512];
    ssize_t n = ::read(fds[0], buffer, sizeof buffer);
    std::string line(buffer, static_cast<std::size_t>(n));
    EXPECT_NE(line.find(R"("level":"info","message":"hello","n":3,"s":"x\ny"})"), std::string::npos) << line;
    EXPECT_EQ(line.back(), '\n');
    ::close(fds[0]);
    ::close(fds[1]);
}

}  // namespace
}  // namespace gb::log
