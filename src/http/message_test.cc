// SPDX-License-Identifier: Apache-2.0
#include "http/message.h"

#include <gtest/gtest.h>

namespace gb::http {
namespace {

TEST(Headers, CompareNamesWithoutCase) {
    Headers headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};
    EXPECT_EQ(headers.get("content-type"), "a");
    EXPECT_EQ(headers.get("X"), "1");
    headers.set("x", "3");
    EXPECT_EQ(headers.items().size(), 2U);
    EXPECT_FALSE(headers.has("y"));
}

TEST(Headers, ListMembership) {
    Headers headers{{"Connection", "keep-alive, Upgrade"}};
    EXPECT_TRUE(headers.lists("connection", "upgrade"));
    EXPECT_FALSE(headers.lists("connection", "close"));
}

TEST(Target, SplitsAndDecodes) {
    auto target = parse_target("/a%20b/c?x=1+2&y=%C3%A9&flag&z=a%3Db");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->path, "/a b/c");
    EXPECT_EQ(target->get("x"), "1 2");
    EXPECT_EQ(target->get("y"), "\xc3\xa9");
    EXPECT_NE(target->find("flag"), nullptr);
    EXPECT_EQ(target->get("z"), "a=b");
    EXPECT_EQ(target->find("none"), nullptr);
}

TEST(Target, KeepsAnEncodedSlashInsideItsSegment) {
    auto target = parse_target("/templates/aliases/ns%2Fname/");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->segments(), (std::vector<std::string>{"templates", "aliases", "ns/name"}));
}

TEST(Target, AcceptsAbsoluteForm) {
    EXPECT_EQ(parse_target("http://host:1/p?q=1")->raw_path, "/p");
    EXPECT_EQ(parse_target("http://host:1/p?q=1#f")->raw_target, "/p?q=1");
    EXPECT_EQ(parse_target("http://host")->raw_path, "/");
    EXPECT_EQ(parse_target("http://host?q=/p")->raw_target, "/?q=/p");
    EXPECT_EQ(parse_target("http://host#/p")->raw_target, "/");
    EXPECT_EQ(parse_target("http://host//p")->raw_target, "//p");
    EXPECT_FALSE(parse_target("urn:a?b=http://host/p"));
    EXPECT_FALSE(parse_target("mailto:root"));
}

TEST(Target, RefusesWhatIsMalformed) {
    for (auto text : {"", "x", "/%zz", "/%4", "/a?b=%", "/a b", "/\x01"})
        EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Head, NoValueCanStartANewLine) {
    ResponseHead head{200, {{"X", "a\r\nEvil: 1"}}};
    EXPECT_EQ(write_head(head), "HTTP/1.1 200 OK\r\nX: aEvil: 1\r\n\r\n");
}

TEST(Percent, RoundTrips) {
    std::string all;
    for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
    EXPECT_EQ(percent_decode(percent_encode(all), true), all);
}

}  // namespace
}  // namespace gb::http
