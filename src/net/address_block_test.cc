// SPDX-License-Identifier: Apache-2.0
#include "net/address_block.h"

#include <set>

#include <gtest/gtest.h>

namespace gb::net {
namespace {

Cidr cidr(std::string_view text) {
    return std::get<Cidr>(*parse_cidr(text));
}

TEST(AddressBlock, CandidatesCoverTheRangeOnceAndBeginByInstance) {
    auto blocks = block_candidates("one", 21);
    EXPECT_EQ(blocks.size(), 2048U);
    std::set<Cidr> distinct(blocks.begin(), blocks.end());
    EXPECT_EQ(distinct.size(), blocks.size());
    for (const Cidr& block : blocks)
        EXPECT_TRUE(cidr("10.192.0.0/10").contains(block.base) && block.length == 21);
    EXPECT_EQ(block_candidates("one", 21), blocks);
    EXPECT_NE(block_candidates("two", 21).front(), blocks.front());
}

TEST(AddressBlock, TagsAreFourHexDigits) {
    EXPECT_EQ(tag_text(0x3f), "003f");
    EXPECT_EQ(instance_tag("one"), instance_tag("one"));
    EXPECT_NE(instance_tag("one"), instance_tag("two"));
}

TEST(AddressBlock, Overlap) {
    Cidr block = cidr("10.200.8.0/21");
    EXPECT_EQ(overlap(block, {}), Overlap::none);
    EXPECT_EQ(overlap(block, {cidr("0.0.0.0/0"), cidr("10.200.0.0/21"), cidr("10.200.16.0/21")}),
              Overlap::none);
    EXPECT_EQ(overlap(block, {cidr("10.0.0.0/8")}), Overlap::covered);
    EXPECT_EQ(overlap(block, {cidr("10.0.0.0/8"), cidr("10.200.15.255")}), Overlap::taken);
    EXPECT_EQ(overlap(block, {cidr("10.200.0.0/16")}), Overlap::taken);
    EXPECT_EQ(overlap(block, {block}), Overlap::taken);
}

TEST(AddressBlock, SlotsAreFourAddressesEach) {
    Cidr block = cidr("10.200.8.0/21");
    EXPECT_EQ(slot_count(block), 512U);
    EXPECT_EQ(to_string(slot_addresses(block, 0).host), "10.200.8.1");
    EXPECT_EQ(to_string(slot_addresses(block, 0).slot), "10.200.8.2");
    EXPECT_EQ(to_string(slot_addresses(block, 511).slot), "10.200.15.254");
    EXPECT_EQ(slot_of(block, slot_addresses(block, 77).slot), 77U);
}

}  // namespace
}  // namespace gb::net
