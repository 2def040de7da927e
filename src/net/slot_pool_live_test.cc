// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/eventually.h"
#include "net/net_world.h"
#include "net/slot_pool.h"

namespace gb::net {
namespace {

using std::chrono::milliseconds;

class SlotPoolTest : public testing::Test {
  protected:
    void SetUp() override {
        GB_NEEDS_ROOT();
        world_.emplace();
        auto host =
            HostNetwork::create({.instance = NetWorld::unique_instance(), .block_length = 25});  // 32 slots
        ASSERT_TRUE(host) << host.error().message;
        host_ = std::move(*host);
    }
    static bool eventually(const std::function<bool()>& is) {
        return test::eventually(is);
    }
    // A block of 32 is small enough to run dry while the kernel removes the links of used slots.
    static Result<std::unique_ptr<Slot>> take_patiently(SlotPool& pool) {
        auto slot = pool.take();
        if (!slot) (void)eventually([&] { return (slot = pool.take()).has_value(); });
        return slot;
    }
    std::optional<NetWorld> world_;
    std::unique_ptr<HostNetwork> host_;
};

TEST_F(SlotPoolTest, FillsAndRefills) {
    SlotPool pool(*host_, {.target = 4});
    EXPECT_TRUE(eventually([&] { return pool.stats().ready == 4; }));
    auto slot = pool.take();
    ASSERT_TRUE(slot);
    EXPECT_EQ((*slot)->policy(), closed_policy());
    EXPECT_TRUE(eventually([&] { return pool.stats().ready == 4; }));
    SlotPoolStats stats = pool.stats();
    EXPECT_EQ(stats.made, 5U);
    EXPECT_EQ(stats.taken, 1U);
    EXPECT_EQ(stats.on_demand, 0U);
}

TEST_F(SlotPoolTest, MakesOnDemandWhenEmpty) {
    SlotPool pool(*host_, {.target = 0});
    auto slot = pool.take();
    ASSERT_TRUE(slot);
    EXPECT_EQ(pool.stats().on_demand, 1U);
    EXPECT_EQ(pool.stats().ready, 0U);
}

TEST_F(SlotPoolTest, UsedSlotsAreThrownAway) {
    SlotPool pool(*host_, {.target = 2});
    // More than there are numbers: they come back, the slots do not.
    for (int i = 0; i < 80; ++i) {
        auto slot = take_patiently(pool);
        ASSERT_TRUE(slot) << slot.error().message;
        EXPECT_EQ((*slot)->policy(), closed_policy());
        ASSERT_TRUE((*slot)->set_policy(open_policy()));
        pool.discard(std::move(*slot));
    }
    EXPECT_EQ(pool.stats().discarded, 80U);
}

TEST_F(SlotPoolTest, ShrinksAndStops) {
    SlotPool pool(*host_, {.target = 4});
    EXPECT_TRUE(eventually([&] { return pool.stats().ready == 4; }));
    pool.set_target(1);
    EXPECT_TRUE(eventually([&] { return pool.stats().ready == 1; }));
    pool.stop();
    pool.stop();
    EXPECT_EQ(pool.stats().ready, 0U);
}

TEST_F(SlotPoolTest, IsUsedByManyThreads) {
    SlotPool pool(*host_, {.target = 4});
    std::vector<std::thread> threads;
    std::atomic<int> failures = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 4; ++i) {
                auto slot = pool.take();
                if (!slot || !(*slot)->set_policy(open_policy()) || !(*slot)->socket()) ++failures;
                if (slot) pool.discard(std::move(*slot));
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace gb::net
