// SPDX-License-Identifier: Apache-2.0
#include "node/warm_pool.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;
using Counts = std::map<std::string, std::size_t>;

// Templates, memory, clock and machines as a test says.
struct World {
    struct Machine final : WarmMachine {
        Machine(World& w, std::string b) : world(w), build(std::move(b)) { ++world.exist; }
        ~Machine() override { --world.exist; }
        [[nodiscard]] bool alive() const override { return !world.all_dead; }
        Result<std::shared_ptr<SandboxMachine>> hand_over(const SandboxSpec& spec,
                                                          net::EgressPolicy) override {
            return fail(ErrorCode::unimplemented, spec.id);
        }
        World& world;
        std::string build;
    };

    WarmPoolParts parts() {
        WarmPoolParts out;
        out.templates = [this]() -> Result<std::vector<WarmTemplate>> {
            std::lock_guard lock(mutex);
            ++looks;
            return templates;
        };
        out.make = [this](const WarmTemplate& of, const std::stop_token& over) { return make(of, over); };
        out.available_mib = [this]() -> Result<std::uint64_t> { return available.load(); };
        out.now = [this] { return Time() + 1h + std::chrono::milliseconds(clock_ms.load()); };
        return out;
    }
    Result<std::unique_ptr<WarmMachine>> make(const WarmTemplate& of, const std::stop_token& over) {
        ++attempts;
        ++making;
        if (making > 1) overlapped = true;
        while (slow && !over.stop_requested()) std::this_thread::sleep_for(1ms);
        --making;
        if (broken) return fail(ErrorCode::internal, "broken");
        return std::make_unique<Machine>(*this, of.build_id);
    }
    void show(std::vector<WarmTemplate> what) {
        std::lock_guard lock(mutex);
        templates = std::move(what);
    }
    void pass(std::chrono::milliseconds time) { clock_ms += time.count(); }

    std::mutex mutex;
    std::vector<WarmTemplate> templates{{"base", "b1", 512}, {"big", "g1", 4096}};
    std::atomic<std::int64_t> clock_ms = 0;
    std::atomic<std::uint64_t> available = 100'000;
    std::atomic<int> exist = 0, attempts = 0, making = 0, looks = 0;
    std::atomic<bool> broken = false, slow = false, all_dead = false, overlapped = false;
};

const WarmTemplate kBase{"base", "b1", 512};
const WarmTemplate kBig{"big", "g1", 4096};

class WarmPoolTest : public ::testing::Test {
  protected:
    void open(WarmLimits limits, std::map<std::string, WarmLimits> own = {}) {
        pool_.emplace(WarmOptions{limits, std::move(own)}, world_.parts());
    }
    // The thread has looked at everything once from here, with nothing left to do.
    void settle() {
        for (int last = -1; last != world_.attempts;) {
            last = world_.attempts;
            const int before = world_.looks;
            pool_->look();
            while (world_.looks < before + 1) std::this_thread::sleep_for(1ms);
            pool_->look();
            while (world_.looks < before + 2) std::this_thread::sleep_for(1ms);
        }
    }
    void later(std::chrono::milliseconds time) {
        world_.pass(time);
        settle();
    }
    std::size_t waiting(const std::string& name = "base") { return pool_->waiting()[name]; }

    World world_;
    std::optional<WarmPool> pool_;
};

TEST_F(WarmPoolTest, NothingIsMadeThatNobodyAsksFor) {
    open({0, 4});
    settle();
    EXPECT_EQ(world_.attempts, 0);
    EXPECT_TRUE(pool_->waiting().empty());
}

TEST_F(WarmPoolTest, AnUnusedPoolDoesNotEvenLook) {
    open({0, 4});
    settle();
    const int before = world_.looks;
    std::this_thread::sleep_for(1500ms);  // its tick is 1 s
    EXPECT_EQ(world_.looks, before);
}

TEST_F(WarmPoolTest, UseFillsItAndTimeEmptiesIt) {
    open({0, 4});
    {
        WarmPool::Creating creating(*pool_, 512);  // none is made meanwhile
        for (int i = 0; i < 3; ++i) EXPECT_EQ(pool_->take(kBase), nullptr);
    }
    later(100ms);
    EXPECT_EQ(waiting(), 3U);
    auto one = pool_->take(kBase);
    ASSERT_NE(one, nullptr);
    settle();
    EXPECT_EQ(waiting(), 4U);
    EXPECT_EQ(pool_->waiting(), (Counts{{"base", 4}}));
    later(60s);
    EXPECT_EQ(waiting(), 2U);
    later(180s);
    EXPECT_EQ(waiting(), 0U);
    EXPECT_EQ(world_.exist, 1) << "the one that was taken";
    EXPECT_FALSE(world_.overlapped);
}

TEST_F(WarmPoolTest, TheLeastIsThereFromTheBeginningAndTheMostIsNeverExceeded) {
    open({0, 4}, {{"base", {2, 3}}});
    settle();
    EXPECT_EQ(waiting(), 2U);
    for (int i = 0; i < 20; ++i) (void)pool_->take(kBase);
    settle();
    EXPECT_EQ(waiting(), 3U);
    later(24h);
    EXPECT_EQ(waiting(), 2U);
    EXPECT_EQ(waiting("big"), 0U);
}

TEST_F(WarmPoolTest, ATemplateWithoutAPoolHasNone) {
    open({0, 4}, {{"base", {0, 0}}});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(pool_->take(kBase), nullptr);
    EXPECT_EQ(pool_->take(kBig), nullptr);
    settle();
    EXPECT_EQ(pool_->waiting(), (Counts{{"big", 1}}));
}

TEST_F(WarmPoolTest, ANewerBuildReplacesTheOlder) {
    open({2, 4});
    settle();
    EXPECT_EQ(waiting(), 2U);
    const WarmTemplate newer{"base", "b2", 512};
    {
        WarmPool::Creating creating(*pool_, 512);
        world_.show({newer});
        EXPECT_EQ(pool_->take(newer), nullptr) << "those of the old build are not for it";
    }
    later(100ms);
    EXPECT_EQ(waiting(), 2U);
    EXPECT_EQ(waiting("big"), 0U) << "that template is gone";
    EXPECT_EQ(world_.exist, 2);
    auto one = pool_->take(newer);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(dynamic_cast<World::Machine&>(*one).build, "b2");
}

TEST_F(WarmPoolTest, ADeadOneIsNotHandedOverAndIsReplaced) {
    open({2, 4});
    settle();
    world_.all_dead = true;
    EXPECT_EQ(pool_->take(kBase), nullptr);
    world_.all_dead = false;
    later(1s);
    EXPECT_EQ(waiting(), 2U);
    world_.all_dead = true;
    settle();
    EXPECT_EQ(world_.exist, 0);
    const int before = world_.attempts;
    settle();
    EXPECT_EQ(world_.attempts, before) << "what dies at once is not made again and again";
    world_.all_dead = false;
    later(1min);
    EXPECT_EQ(waiting(), 2U);
    EXPECT_EQ(waiting("big"), 2U);
    EXPECT_EQ(world_.exist, 4);
}

TEST_F(WarmPoolTest, NoneIsMadeThatDoesNotFitBesideWhatIsBeingMade) {
    world_.available = 512;
    open({0, 4}, {{"base", {2, 2}}});
    settle();
    EXPECT_EQ(world_.attempts, 0) << "it must leave something";
    world_.available = 513;
    settle();
    EXPECT_EQ(waiting(), 2U) << "memory counts as it is, and the fake ones use none";
    {
        // In this order, as a create does it: otherwise one may be made in between.
        WarmPool::Creating creating(*pool_, 100);
        (void)pool_->take(kBase);
        settle();
        EXPECT_EQ(waiting(), 1U);
    }
}

TEST_F(WarmPoolTest, WhatDoesNotFitKeepsNothingElseBack) {
    world_.available = 1000;
    open({1, 1});
    settle();
    EXPECT_EQ(pool_->waiting(), (Counts{{"base", 1}, {"big", 0}}));
}

TEST_F(WarmPoolTest, CreatesGoFirst) {
    open({1, 4});
    {
        WarmPool::Creating first(*pool_, 512);
        settle();
        const int before = world_.attempts;
        auto one = pool_->take(kBase);
        settle();
        EXPECT_EQ(world_.attempts, before);
        {
            WarmPool::Creating second(*pool_, 512);
        }
        later(1h);
        EXPECT_EQ(world_.attempts, before) << "one is still under way";
    }
    const int before = world_.attempts;
    settle();
    EXPECT_EQ(world_.attempts, before) << "its client is at work";
    later(100ms);
    EXPECT_EQ(waiting(), 1U);
}

TEST_F(WarmPoolTest, WhenMemoryIsShortTheLeastUsedIsGivenUpFirst) {
    open({1, 4});
    settle();
    (void)pool_->take(kBase);
    settle();
    EXPECT_EQ(pool_->waiting(), (Counts{{"base", 1}, {"big", 1}}));
    EXPECT_TRUE(pool_->give_up());
    EXPECT_EQ(pool_->waiting(), (Counts{{"base", 1}, {"big", 0}}));
    EXPECT_TRUE(pool_->give_up());
    EXPECT_FALSE(pool_->give_up());
    EXPECT_EQ(world_.exist, 0);
    settle();
    EXPECT_EQ(world_.exist, 0) << "not at once again";
    later(11s);
    EXPECT_EQ(pool_->waiting(), (Counts{{"base", 1}, {"big", 1}}));
}

TEST_F(WarmPoolTest, AfterFailuresItWaitsLongerAndLonger) {
    world_.broken = true;
    open({0, 4}, {{"base", {1, 1}}});
    settle();
    EXPECT_EQ(world_.attempts, 1);
    for (const auto& [after, attempts] :
         std::initializer_list<std::pair<std::chrono::milliseconds, int>>{{999ms, 1},
                                                                          {1ms, 2},
                                                                          {1999ms, 2},
                                                                          {1ms, 3},
                                                                          {4s, 4},
                                                                          {8s, 5},
                                                                          {16s, 6},
                                                                          {32s, 7},
                                                                          {59s, 7},
                                                                          {1s, 8},
                                                                          {60s, 9}}) {
        later(after);
        EXPECT_EQ(world_.attempts, attempts) << after.count();
    }
    EXPECT_EQ(pool_->take(kBase), nullptr);
    world_.broken = false;
    later(60s);
    EXPECT_EQ(waiting(), 1U);
    world_.broken = true;
    auto one = pool_->take(kBase);
    settle();
    const int before = world_.attempts;
    later(1s);
    EXPECT_EQ(world_.attempts, before + 1) << "a success begins anew";
}

TEST_F(WarmPoolTest, StopsWhileOneIsBeingMadeAndHandsOutNothingAfterwards) {
    world_.slow = true;
    open({1, 1});
    while (world_.making == 0) std::this_thread::sleep_for(1ms);
    pool_->stop();
    EXPECT_EQ(world_.exist, 0);
    EXPECT_EQ(pool_->take(kBase), nullptr);
    EXPECT_FALSE(pool_->give_up());
    EXPECT_TRUE(pool_->waiting().empty());
    pool_->stop();
    pool_.reset();
    world_.slow = false;
    open({2, 2});
    settle();
    EXPECT_EQ(world_.exist, 4);
    pool_.reset();
    EXPECT_EQ(world_.exist, 0);
}

TEST_F(WarmPoolTest, ManyAtOnceGetDifferentOnesOrNone) {
    WarmPoolParts parts = world_.parts();
    parts.now = [] { return std::chrono::steady_clock::now(); };
    parts.quiet = 0ms;
    pool_.emplace(WarmOptions{{4, 8}, {}}, std::move(parts));
    settle();
    std::atomic<int> taken = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 50; ++round) {
                WarmPool::Creating creating(*pool_, 512);
                if (auto one = pool_->take(i % 2 == 0 ? kBase : kBig)) ++taken;
                if (round % 10 == 9) (void)pool_->give_up();
                (void)pool_->waiting();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(taken, 0);
    pool_.reset();
    EXPECT_EQ(world_.exist, 0);
}

}  // namespace
}  // namespace gb
