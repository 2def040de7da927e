// SPDX-License-Identifier: Apache-2.0
#include "engine/process_facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gb::engine {
namespace {

TEST(ProcessFacts, StartTimeIsBehindANameWithAnythingInIt) {
    const std::string rest = " S 1 2 3 0 -1 4194560 5 0 0 0 6 7 0 0 20 0 1 0 123456 8 9 10";
    EXPECT_EQ(*parse_start_ticks("42 (qemu)" + rest), 123456U);
    EXPECT_EQ(*parse_start_ticks("42 (a) S 1 (b) R)" + rest), 123456U);
    EXPECT_EQ(parse_start_ticks("42 qemu S 1").error().code, ErrorCode::data_loss);
    EXPECT_EQ(parse_start_ticks("42 (qemu) S 1 2 3").error().code, ErrorCode::data_loss);
    EXPECT_EQ(parse_start_ticks("").error().code, ErrorCode::data_loss);
}

TEST(ProcessFacts, OneUserOrNone) {
    EXPECT_EQ(*parse_uid("Name:\tq\nUmask:\t0077\nUid:\t1000\t1000\t1000\t1000\nGid:\t1\t1\t1\t1\n"), 1000U);
    EXPECT_EQ(parse_uid("Name:\tq\nUid:\t1000\t0\t1000\t1000\n").error().code,
              ErrorCode::failed_precondition);
    EXPECT_EQ(parse_uid("Name:\tq\nUid:\t1000\n").error().code, ErrorCode::data_loss);
    EXPECT_EQ(parse_uid("Name:\tq\n").error().code, ErrorCode::data_loss);
}

TEST(ProcessFacts, OfThisProcess) {
    auto facts = read_process_facts(::getpid());
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(facts->uid, ::getuid());
    EXPECT_GT(facts->start_ticks, 0U);
    EXPECT_EQ(read_process_facts(::getpid())->start_ticks, facts->start_ticks);
    EXPECT_EQ(read_process_facts(0x3fffffff).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb::engine
