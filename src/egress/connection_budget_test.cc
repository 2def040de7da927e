// SPDX-License-Identifier: Apache-2.0
#include "egress/connection_budget.h"

#include <vector>

#include <gtest/gtest.h>

namespace gb::egress {
namespace {

using Holder = std::shared_ptr<std::size_t>;

std::vector<ConnectionBudget::Place> take_all(ConnectionBudget& budget, const Holder& holder) {
    std::vector<ConnectionBudget::Place> out;
    while (auto place = budget.take(holder)) out.push_back(std::move(place));
    return out;
}

TEST(ConnectionBudget, OneThatTakesAllItCanGetsHalf) {
    auto budget = std::make_shared<ConnectionBudget>(100);
    const auto greedy = std::make_shared<std::size_t>(0), quiet = std::make_shared<std::size_t>(0);
    const auto held = take_all(*budget, greedy);
    EXPECT_EQ(held.size(), 50U);
    EXPECT_EQ(take_all(*budget, quiet).size(), 25U) << "a second one finds room";
}

TEST(ConnectionBudget, AQuietOneFindsRoomBesideMany) {
    auto budget = std::make_shared<ConnectionBudget>(1000);
    std::vector<std::vector<ConnectionBudget::Place>> held;
    for (int i = 0; i < 5; ++i) {
        held.push_back(take_all(*budget, std::make_shared<std::size_t>(0)));
        EXPECT_FALSE(held.back().empty());
    }
    EXPECT_TRUE(budget->take(std::make_shared<std::size_t>(0)));
}

TEST(ConnectionBudget, PlacesThatEndAreFreeAgain) {
    auto budget = std::make_shared<ConnectionBudget>(10);
    const auto holder = std::make_shared<std::size_t>(0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(take_all(*budget, holder).size(), 5U);
    EXPECT_EQ(budget->taken(), 0U);
    EXPECT_EQ(*holder, 0U);
}

TEST(ConnectionBudget, NoneIsNone) {
    auto budget = std::make_shared<ConnectionBudget>(0);
    EXPECT_FALSE(budget->take(std::make_shared<std::size_t>(0)));
}

}  // namespace
}  // namespace gb::egress
