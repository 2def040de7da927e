// SPDX-License-Identifier: Apache-2.0
// What a server leaves on its host, and what the next start finds. S17, S18.
#include <sys/wait.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "net/address_block.h"
#include "net/host_network.h"
#include "net/host_rules.h"
#include "net/net_world.h"

namespace gb::net {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class HostNetworkTest : public testing::Test {
  protected:
    void SetUp() override {
        GB_NEEDS_ROOT();
        world_.emplace();
    }
    static std::string tables() { return NetWorld::command({"nft", "list", "tables"}); }
    static std::string routes() { return NetWorld::command({"ip", "route"}); }
    static std::string links() { return NetWorld::command({"ip", "-o", "link"}); }

    std::optional<NetWorld> world_;
    std::string instance_ = NetWorld::unique_instance();
};

TEST_F(HostNetworkTest, TakesABlockAndGivesItBack) {
    std::string before = tables() + routes() + links();
    {
        auto host = HostNetwork::create({.instance = instance_});
        ASSERT_TRUE(host) << host.error().message;
        EXPECT_THAT(tables(), HasSubstr(host_table((*host)->tag())));
        EXPECT_THAT(routes(), HasSubstr(fmt::format("unreachable {}", to_string((*host)->block()))));
        EXPECT_EQ(get_sysctl("net/ipv4/ip_forward"), "1");
    }
    EXPECT_EQ(tables() + routes() + links(), before);
}

TEST_F(HostNetworkTest, RunsOnceAnInstance) {
    auto host = HostNetwork::create({.instance = instance_});
    ASSERT_TRUE(host);
    auto second = HostNetwork::create({.instance = instance_});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::already_exists);
    EXPECT_EQ(HostNetwork::reclaim(instance_).error().code, ErrorCode::already_exists);
}

TEST_F(HostNetworkTest, InstancesLiveBesideEachOther) {
    std::vector<std::unique_ptr<HostNetwork>> hosts;
    std::vector<Cidr> blocks;
    for (int i = 0; i < 8; ++i) {
        auto host = HostNetwork::create({.instance = NetWorld::unique_instance(), .block_length = 14});
        ASSERT_TRUE(host) << host.error().message;  // 16 blocks of this size: some collide and move on
        for (const Cidr& other : blocks) EXPECT_FALSE(other.overlaps((*host)->block()));
        blocks.push_back((*host)->block());
        hosts.push_back(std::move(*host));
    }
    auto one = Slot::create(*hosts[0], {.link = GuestLink::veth});
    auto two = Slot::create(*hosts[1], {.link = GuestLink::veth});
    ASSERT_TRUE(one && two);
    ASSERT_TRUE((*one)->set_policy(open_policy()));
    EXPECT_EQ(in_guest(**one, [] { return tcp_probe("8.8.8.8", 443); }), 0);
    std::string other = to_string(slot_addresses(hosts[1]->block(), (*two)->number()).slot);
    EXPECT_EQ(in_guest(**one, [&] { return tcp_probe(other, 443); }), ECONNREFUSED);
}

TEST_F(HostNetworkTest, AvoidsWhatTheHostRoutes) {
    Cidr first = block_candidates(instance_, 21).front();
    NetWorld::command({"ip", "route", "add", to_string(first.last()), "dev", "wan0"});
    auto host = HostNetwork::create({.instance = instance_});
    ASSERT_TRUE(host);
    EXPECT_NE((*host)->block(), first);
}

TEST_F(HostNetworkTest, FindsABlockBehindACoveringRoute) {
    NetWorld::command({"ip", "route", "add", "10.0.0.0/8", "dev", "wan0"});
    auto host = HostNetwork::create({.instance = instance_});
    ASSERT_TRUE(host) << host.error().message;
    host->reset();
    NetWorld::command({"ip", "route", "add", "10.192.0.0/11", "dev", "wan0"});
    NetWorld::command({"ip", "route", "add", "10.224.0.0/11", "dev", "wan0"});
    auto none = HostNetwork::create({.instance = instance_});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::resource_exhausted);
}

TEST_F(HostNetworkTest, S18_NextStartRemovesWhatAKilledServerLeft) {
    std::string before = tables() + routes() + links();
    pid_t child = ::fork();
    if (child == 0) {
        auto host = HostNetwork::create({.instance = instance_});
        if (!host) ::_exit(1);
        auto slot = Slot::create(**host);
        if (!slot) ::_exit(2);
        ::_exit(0);  // as if killed: no destructor runs
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    // Links whose namespace still lives, because a machine outlived its server.
    std::uint16_t tag = instance_tag(instance_);
    auto elsewhere = create_netns();
    for (int i = 100; i < 103; ++i)
        ASSERT_TRUE(Links::open()->add_veth({.name = fmt::format("{}{}", host_link_prefix(tag), i),
                                             .group = i == 102 ? 0U : 0x67620000U | tag},
                                            {.name = fmt::format("up{}", i), .netns_fd = elsewhere->get()}));
    EXPECT_THAT(tables(), HasSubstr(host_table(tag)));

    auto left = HostNetwork::reclaim(instance_);
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_EQ(left->tables, 1U);
    EXPECT_EQ(left->routes, 1U);
    EXPECT_GE(left->links, 3U);
    EXPECT_EQ(tables() + routes() + links(), before);
    left = HostNetwork::reclaim(instance_);
    EXPECT_EQ(left->tables + left->routes + left->links, 0U);
    EXPECT_TRUE(HostNetwork::create({.instance = instance_}));
}

TEST_F(HostNetworkTest, OperatorsCeilingIsAboveTheClients) {
    auto host = HostNetwork::create(
        {.instance = instance_, .ceiling = {.closed = {std::get<Cidr>(*parse_cidr("8.8.0.0/16"))}}});
    ASSERT_TRUE(host);
    auto slot = Slot::create(**host, {.link = GuestLink::veth});
    ASSERT_TRUE(slot);
    ASSERT_TRUE((*slot)->set_policy(*parse_policy({.allow_out = {"8.8.8.8", "0.0.0.0/0"}})));
    EXPECT_EQ(in_guest(**slot, [] { return tcp_probe("8.8.8.8", 443); }), ECONNREFUSED);
    EXPECT_EQ(in_guest(**slot, [] { return tcp_probe("8.9.8.8", 443); }), 0);
    EXPECT_THAT(brief(decisions_of(**slot)), testing::ElementsAre("deny tcp 8.8.8.8 443 closed 8.8.0.0/16",
                                                                  "allow tcp 8.9.8.8 443 allow 0.0.0.0/0"));
}

}  // namespace
}  // namespace gb::net
