// SPDX-License-Identifier: Apache-2.0
#include "probe/payloads.h"

#include <gtest/gtest.h>

namespace gb::probe {
namespace {

TEST(Payloads, AQuestionIsAnsweredByItsOwnIdOnly) {
    const std::string question = dns_question("ok.example.com", 0x1234);
    ASSERT_GT(question.size(), 12U);
    EXPECT_FALSE(read_dns_answer(question, 0x1234).good) << "a question is no answer";
    std::string answer = question;
    answer[2] = static_cast<char>(0x81);
    answer[3] = static_cast<char>(0x80);
    answer[7] = 1;
    answer += std::string("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xcb\x00\x71\x0a", 16);
    const DnsAnswer read = read_dns_answer(answer, 0x1234);
    EXPECT_TRUE(read.good);
    EXPECT_EQ(read.code, 0);
    EXPECT_EQ(read.addresses, std::vector<std::string>{"203.0.113.10"});
    EXPECT_FALSE(read_dns_answer(answer, 0x1235).good);
    for (std::size_t size = 0; size < answer.size(); ++size)
        EXPECT_TRUE(read_dns_answer(answer.substr(0, size), 0x1234).addresses.empty()) << size;
}

TEST(Payloads, NamesThatAreNoneMakeNoQuestion) {
    EXPECT_TRUE(dns_question(std::string(300, 'a'), 1).empty());
}

TEST(Payloads, EchoesAreKnownByTheirId) {
    const std::string request = echo_request(0xbeef);
    std::string reply = std::string("\x45", 1) + std::string(19, '\0') + request;
    EXPECT_FALSE(is_echo_reply(reply, 0xbeef)) << "a request";
    reply[20] = 0;
    EXPECT_TRUE(is_echo_reply(reply, 0xbeef));
    EXPECT_FALSE(is_echo_reply(reply, 0xbeee));
    EXPECT_FALSE(is_echo_reply(reply.substr(0, 24), 0xbeef));
    EXPECT_FALSE(is_echo_reply("", 0xbeef));
}

TEST(Payloads, QuicPacketsAreOfTheLeastSize) {
    EXPECT_EQ(quic_packet().size(), 1200U);
    EXPECT_EQ(time_request().size(), 48U);
}

}  // namespace
}  // namespace gb::probe
