// SPDX-License-Identifier: Apache-2.0
#include "egress/resolver.h"

#include <gtest/gtest.h>

#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;

class ResolverTest : public ResolverFixture {
  protected:
    Result<Resolved> resolve(const std::string& name) {
        return run(io_, resolver_->resolve("sandbox", name));
    }
    int asked() { return server_->udp_queries(); }
};

TEST_F(ResolverTest, AddressesAreKeptForTheShortestTime) {
    script_ = [](const std::string& query) {
        return answer_to(query, 3)
            .raw_record("\xc0\x0c"s, DnsType::cname, 20, name_bytes("cdn.example.net"))
            .record("cdn.example.net", DnsType::a, 60, a_rdata("1.2.3.4"))
            .record("cdn.example.net", DnsType::a, 30, a_rdata("10.0.0.1"))
            .str();
    };
    const auto first = resolve("www.example.com");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->chain, std::vector<std::string>{"cdn.example.net"});
    EXPECT_EQ(first->addresses, (std::vector<net::Ipv4>{{0x01020304}, {0x0a000001}}));
    EXPECT_EQ(first->expires_ms, now_ms_ + 20'000);
    now_ms_ += 19'999;
    EXPECT_EQ(resolve("www.example.com")->expires_ms, first->expires_ms);
    EXPECT_EQ(asked(), 1);
    now_ms_ += 1;
    EXPECT_TRUE(resolve("www.example.com"));
    EXPECT_EQ(asked(), 2);

    EXPECT_EQ(public_addresses(*first, [](net::Ipv4 address) { return address.value >> 24 != 10; }),
              std::vector<net::Ipv4>{{0x01020304}});
    EXPECT_TRUE(public_addresses(*first, [](net::Ipv4) { return false; }).empty());
}

TEST_F(ResolverTest, LongTimesAreCut) {
    script_ = [](const std::string& query) {
        return answer_to(query, 1).raw_record("\xc0\x0c"s, DnsType::a, 86'400, a_rdata("1.2.3.4")).str();
    };
    EXPECT_EQ(resolve("a")->expires_ms, now_ms_ + 300'000);
}

TEST_F(ResolverTest, NegativeAnswersAreKeptForAMoment) {
    for (std::uint16_t rcode : {3, 0}) {
        script_ = [rcode](const std::string& query) { return answer_to(query, 0, rcode).str(); };
        const std::string name = "n" + std::to_string(rcode);
        const int before = asked();
        const auto resolved = resolve(name);
        ASSERT_TRUE(resolved);
        EXPECT_EQ(static_cast<int>(resolved->rcode), rcode);
        EXPECT_TRUE(resolved->addresses.empty());
        now_ms_ += 4999;
        EXPECT_TRUE(resolve(name));
        EXPECT_EQ(asked(), before + 1);
        now_ms_ += 1;
        EXPECT_TRUE(resolve(name));
        EXPECT_EQ(asked(), before + 2);
    }
}

TEST_F(ResolverTest, FailuresAreNotKept) {
    script_ = [](const std::string& query) { return answer_to(query, 0, 2).str(); };
    EXPECT_EQ(resolve("a").error().code, ErrorCode::unavailable);
    EXPECT_EQ(resolver_->cached_names(), 0U);
    script_ = [](const std::string& query) {
        return answer_to(query, 1).raw_record("\xc0\x0c"s, DnsType::a, 60, a_rdata("1.2.3.4")).str();
    };
    EXPECT_TRUE(resolve("a"));
    EXPECT_EQ(resolve("A").error().code, ErrorCode::invalid_argument);
}

TEST_F(ResolverTest, TheOldestNamesGo) {
    script_ = [](const std::string& query) {
        return answer_to(query, 1).raw_record("\xc0\x0c"s, DnsType::a, 60, a_rdata("1.2.3.4")).str();
    };
    make({.max_names = 3});
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(resolve(name));
    EXPECT_EQ(resolver_->cached_names(), 3U);
    EXPECT_TRUE(resolve("b"));
    EXPECT_EQ(asked(), 4);
    EXPECT_TRUE(resolve("a"));
    EXPECT_EQ(asked(), 5);
}

}  // namespace
}  // namespace gb::egress
