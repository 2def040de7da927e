// SPDX-License-Identifier: Apache-2.0
#include "api/header_rules.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

Status check(std::string name, std::string value) {
    return check_header_rules({.rules = {{"a.com", {{std::move(name), std::move(value)}}}}});
}

TEST(HeaderRules, TokensAndTextAreGood) {
    for (auto [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"Authorization", "Bearer ${e2b.secrets.key}"},
             {"X-Two", "${e2b.secrets.a}${e2b.secrets.b} tail"},
             {"x!#$%&'*+-.^_`|~1", ""},
             {"X-Dollar", "costs $5 {x} ${other}"},
             {"X-Tab", "a\tb"}})
        EXPECT_TRUE(check(name, value)) << name << ": " << value;
}

TEST(HeaderRules, WhatWouldBreakAHeadIsRefusedWithoutTheValue) {
    for (auto [name, value] : std::initializer_list<std::pair<std::string, std::string>>{
             {"", "q9x"},
             {"A B", "q9x"},
             {"A:", "q9x"},
             {"A\r\nB", "q9x"},
             {"\xc3\xa4", "q9x"},
             {std::string(257, 'a'), "q9x"},
             {"A", "q9x\r\nB: c"},
             {"A", "q9x\n"},
             {"A", std::string("q9x\0", 4)},
             {"A", "q9x\x7f"},
             {"A", "q9x" + std::string(8192, 'x')},
             {"A", "q9x ${e2b.secrets.key"},
             {"A", "q9x ${e2b.secrets.}"},
             {"A", "q9x ${e2b.secrets.${e2b.secrets.a}}"},
             {"A", "q9x ${e2b.other}"},
             {"A", "q9x ${e2b.}"}}) {
        auto good = check(name, value);
        ASSERT_FALSE(good) << name << ": " << value;
        EXPECT_EQ(good.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(good.error().message.find("q9x"), std::string::npos) << good.error().message;
    }
    std::vector<net::HeaderRule> many(65, {"A", "b"});
    EXPECT_FALSE(check_header_rules({.rules = {{"a.com", many}}}));
}

TEST(HeaderRules, IdentityIsNotSupported) {
    auto good = check("A", "${e2b.identity.tokens.aws}");
    ASSERT_FALSE(good);
    EXPECT_NE(good.error().message.find("unknown placeholder"), std::string::npos);
}

TEST(HeaderRules, SecretsAreFoundOnceEach) {
    const net::NetworkRequest request{.rules = {{"a.com", {{"A", "${e2b.secrets.b} ${e2b.secrets.a}"}}},
                                                {"b.com", {{"A", "${e2b.secrets.b}"}, {"B", "none"}}}}};
    EXPECT_EQ(secret_names(request), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(secret_names({}).empty());
}

}  // namespace
}  // namespace gb::api
