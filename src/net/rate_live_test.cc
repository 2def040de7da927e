// SPDX-License-Identifier: Apache-2.0
// Limits of what a slot may send and receive: where they are set, that they hold back, and what they spare.
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/links.h"
#include "net/net_world.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kUpload = 1'000'000, kDownload = 4'000'000;  // bytes a second

class RateTest : public HostTest {
  protected:
    std::unique_ptr<Slot> make(std::uint64_t upload, std::uint64_t download) {
        auto slot = Slot::create(
            *host_, {.link = GuestLink::veth, .upload_bytes_s = upload, .download_bytes_s = download});
        EXPECT_TRUE(slot) << slot.error().message;
        EXPECT_TRUE((*slot)->set_policy(open_policy()));
        return std::move(*slot);
    }
    static std::string uplink(const Slot& slot) {
        return in_netns(slot.netns_fd(), [] {
            return NetWorld::command({"tc", "-s", "qdisc", "show", "dev", std::string(kUplink)});
        });
    }
    std::string downlink(const Slot& slot) {
        return NetWorld::command({"tc", "-s", "qdisc", "show", "dev", host_->link_name(slot.number())});
    }
};

TEST_F(RateTest, EachWayHasItsOwn) {
    auto slot = make(kUpload, kDownload);
    EXPECT_THAT(uplink(*slot), HasSubstr("rate 8Mbit"));
    EXPECT_THAT(downlink(*slot), HasSubstr("rate 32Mbit"));
    auto free = make(0, 0);
    EXPECT_THAT(uplink(*free), Not(HasSubstr("tbf")));
    EXPECT_THAT(downlink(*free), Not(HasSubstr("tbf")));
    auto one_way = make(0, kDownload);
    EXPECT_THAT(uplink(*one_way), Not(HasSubstr("tbf")));
    EXPECT_THAT(downlink(*one_way), HasSubstr("rate 32Mbit"));
}

TEST_F(RateTest, RatesBeyond32BitsAreWhole) {
    auto slot = make(std::uint64_t{12'500'000'000}, std::uint64_t{5'000'000'000});
    EXPECT_THAT(uplink(*slot), HasSubstr("rate 100Gbit"));
    EXPECT_THAT(downlink(*slot), HasSubstr("rate 40Gbit"));
}

TEST_F(RateTest, BytesTakeTheirTime) {
    auto slot = make(100'000, 0);
    const std::int64_t start = monotonic_ms();
    in_guest(*slot, [&] {
        UniqueFd fd = tcp_connect("8.8.8.8", 443);
        ASSERT_TRUE(fd);
        const std::string part(250, 'x');
        for (std::size_t sent = 0; sent < 250'000; sent += part.size()) ASSERT_EQ(echo(fd.get(), part), 0);
    });
    EXPECT_GE(monotonic_ms() - start, 1'000) << "less than 100,000 bytes may pass at once";
}

TEST_F(RateTest, WhatIsTooFastIsDroppedAndOthersHaveTheirOwn) {
    auto slot = make(100'000, 0);
    auto other = make(100'000, 0);
    in_guest(*slot, [] { send_udp("8.8.8.8", 9, 50'000); });
    EXPECT_THAT(uplink(*slot), Not(HasSubstr("dropped 0,")));
    EXPECT_THAT(uplink(*other), HasSubstr("dropped 0,"));
    EXPECT_EQ(in_guest(*other, [] { return tcp_probe("8.8.8.8", 443); }), 0);
}

TEST_F(RateTest, RatesAreReplacedAndRemoved) {
    auto slot = make(kUpload, 0);
    in_netns(slot->netns_fd(), [] {
        auto links = Links::open();
        ASSERT_TRUE(links);
        auto index = links->index(kUplink);
        ASSERT_TRUE(index);
        EXPECT_TRUE(links->limit_rate(*index, 2 * kUpload));
    });
    EXPECT_THAT(uplink(*slot), HasSubstr("rate 16Mbit"));
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(host_->limit_download(slot->number(), 0)) << "none is none";
        EXPECT_THAT(downlink(*slot), Not(HasSubstr("tbf")));
    }
}

}  // namespace
}  // namespace gb::net
