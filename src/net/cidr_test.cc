// SPDX-License-Identifier: Apache-2.0
#include "net/cidr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gb::net {
namespace {

using namespace std::string_view_literals;

// What the text stands for: a block, "v6", or "-" for refused.
std::string meaning(std::string_view text) {
    auto parsed = parse_cidr(text);
    if (!parsed) return "-";
    if (const Cidr* cidr = std::get_if<Cidr>(&*parsed)) return to_string(*cidr);
    return "v6";
}

TEST(Cidr, Parses) {
    const std::pair<std::string_view, std::string_view> kCases[] = {
        {"1.2.3.4", "1.2.3.4"},
        {"1.2.3.4/32", "1.2.3.4"},
        {"1.2.3.4/24", "1.2.3.0/24"},
        {"255.255.255.255/0", "0.0.0.0/0"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"::1", "v6"},
        {"::/0", "v6"},
        {"2001:db8::/32", "v6"},
        {"::ffff:1.2.3.4", "1.2.3.4"},
        {"::FFFF:0102:0304/120", "1.2.3.0/24"},
        {"::ffff:0:0/96", "0.0.0.0/0"},
        {"::ffff:0:0/95", "v6"},
        {"", "-"},
        {"/", "-"},
        {"/24", "-"},
        {"1.2.3", "-"},
        {"1.2.3.4.5", "-"},
        {"1.2.3.256", "-"},
        {"1.2.3.04", "-"},
        {"0x1.2.3.4", "-"},
        {"16909060", "-"},
        {" 1.2.3.4", "-"},
        {"1.2.3.4 ", "-"},
        {"1.2.3.4\n", "-"},
        {"1.2.3.4\0.5"sv, "-"},
        {"1.2.3.4/", "-"},
        {"1.2.3.4/33", "-"},
        {"1.2.3.4/-1", "-"},
        {"1.2.3.4/+8", "-"},
        {"1.2.3.4/08", "-"},
        {"1.2.3.4/8/8", "-"},
        {"1.2.3.4:80", "-"},
        {"::1/129", "-"},
        {"fe80::1%eth0", "-"},
        {"::1\0"sv, "-"},
        {"[::1]", "-"},
        {"example.com", "-"},
    };
    for (auto [text, expected] : kCases) EXPECT_EQ(meaning(text), expected) << text;
}

TEST(Cidr, MergesIntoDisjointRanges) {
    auto merged = [](std::vector<std::string_view> texts) {
        std::vector<Cidr> blocks;
        for (auto text : texts) blocks.push_back(std::get<Cidr>(*parse_cidr(text)));
        std::vector<std::string> out;
        for (const Range& range : merge(blocks))
            out.push_back(to_string(range.first) + "-" + to_string(range.last));
        return out;
    };
    using testing::ElementsAre;
    EXPECT_THAT(merged({}), ElementsAre());
    EXPECT_THAT(merged({"0.0.0.0/0", "1.2.3.4"}), ElementsAre("0.0.0.0-255.255.255.255"));
    EXPECT_THAT(merged({"8.8.8.128/25", "8.8.8.0/25"}), ElementsAre("8.8.8.0-8.8.8.255"));
    EXPECT_THAT(merged({"8.8.8.9", "8.8.8.7"}), ElementsAre("8.8.8.7-8.8.8.7", "8.8.8.9-8.8.8.9"));
    EXPECT_THAT(merged({"240.0.0.0/4", "224.0.0.0/4", "255.255.255.255"}),
                ElementsAre("224.0.0.0-255.255.255.255"));
    EXPECT_THAT(merged({"10.0.0.0/8", "10.1.0.0/16", "12.0.0.0/8"}),
                ElementsAre("10.0.0.0-10.255.255.255", "12.0.0.0-12.255.255.255"));
}

}  // namespace
}  // namespace gb::net
