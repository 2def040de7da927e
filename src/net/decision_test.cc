// SPDX-License-Identifier: Apache-2.0
#include "net/decision.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "net/decision_log.h"

namespace gb::net {
namespace {

using testing::ElementsAre;

Decision sample() {
    return {.time_ms = 1767323045678,
            .verdict = Verdict::deny,
            .protocol = 6,
            .source = "10.11.0.2",
            .address = "10.0.0.1",
            .source_port = 40312,
            .port = 22,
            .rule = "private"};
}

TEST(DecisionLine, Tcp) {
    EXPECT_EQ(decision_line(sample()),
              R"({"time":"2026-01-02T03:04:05.678Z","verdict":"deny","protocol":"tcp","address":"10.0.0.1",)"
              R"("port":22,"source_port":40312,"rule":"private"})"
              "\n");
}

TEST(DecisionLine, IcmpNameAndSpoofedSource) {
    Decision d = sample();
    d.protocol = 1;
    d.icmp_type = 8;
    d.name = "a\"b";
    d.rule = "spoofed-source";
    EXPECT_EQ(decision_line(d),
              R"({"time":"2026-01-02T03:04:05.678Z","verdict":"deny","protocol":"icmp","address":"10.0.0.1",)"
              R"("name":"a\"b","icmp_type":8,"source":"10.11.0.2","rule":"spoofed-source"})"
              "\n");
}

TEST(DecisionRule, IsNamedByThePolicyInForce) {
    auto named = [](std::string_view rule, const NetworkRequest& request) {
        Decision d = sample();
        d.address = "8.8.8.8";
        d.rule = rule;
        name_rule(d, *parse_policy(request), {});
        return d.rule;
    };
    EXPECT_EQ(named("denied", {.deny_out = {"8.0.0.0/8"}}), "deny 8.0.0.0/8");
    EXPECT_EQ(named("allowed", {.allow_out = {"8.8.8.8"}}), "allow 8.8.8.8");
    EXPECT_EQ(named("denied", {}), "denied") << "the policy changed since";
    EXPECT_EQ(named("default", {.deny_out = {"8.0.0.0/8"}}), "default");
    EXPECT_EQ(named("private", {.deny_out = {"8.0.0.0/8"}}), "private");
}

class DecisionLogTest : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(dir_); }
    void TearDown() override { std::filesystem::remove_all(dir_); }
    std::vector<std::string> lines(const std::string& name) {
        std::ifstream in(dir_ / name);
        std::vector<std::string> out;
        for (std::string line; std::getline(in, line);) out.push_back(line);
        return out;
    }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-decisions-" + random_id(8));
};

TEST_F(DecisionLogTest, AppendsAcrossOpens) {
    const Decision d = sample();
    for (int i = 0; i < 2; ++i) {
        auto log = DecisionLog::open(dir_ / "egress.log");
        ASSERT_TRUE(log);
        ASSERT_TRUE(log->append(std::span(&d, 1)));
    }
    EXPECT_EQ(lines("egress.log").size(), 2U);
}

TEST_F(DecisionLogTest, KeepsTwoFilesOfLimitedSize) {
    auto log = DecisionLog::open(dir_ / "egress.log", 1000);
    ASSERT_TRUE(log);
    const std::vector<Decision> some(3, sample());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(log->append(some));
    EXPECT_LE(std::filesystem::file_size(dir_ / "egress.log"), 1000U);
    EXPECT_LE(std::filesystem::file_size(dir_ / "egress.log.1"), 1000U);
    EXPECT_FALSE(lines("egress.log").empty());
    EXPECT_EQ(lines("egress.log.1").back() + "\n", decision_line(sample()));
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_)) ++files;
    EXPECT_EQ(files, 2U);
}

TEST_F(DecisionLogTest, SaysWhatIsMissingOnce) {
    auto log = DecisionLog::open(dir_ / "egress.log");
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->note_suppressed(0));
    ASSERT_TRUE(log->note_suppressed(7));
    ASSERT_TRUE(log->note_suppressed(7));
    ASSERT_TRUE(log->note_suppressed(9));
    EXPECT_THAT(lines("egress.log"), ElementsAre(testing::EndsWith(R"("suppressed":7})"),
                                                 testing::EndsWith(R"("suppressed":2})")));
}

TEST_F(DecisionLogTest, ErrorsAreValues) {
    EXPECT_FALSE(DecisionLog::open(dir_ / "none" / "egress.log"));
}

}  // namespace
}  // namespace gb::net
