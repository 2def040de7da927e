// SPDX-License-Identifier: Apache-2.0
#include "egress/header_rules.h"

#include <map>

#include <gtest/gtest.h>

namespace gb::egress {
namespace {

using Rules = std::vector<HeaderRule>;

// A lookup that knows these.
SecretLookup secrets(std::map<std::string, std::string> known) {
    return [known = std::move(known)](std::string_view name) -> Result<std::string> {
        const auto found = known.find(std::string(name));
        if (found == known.end()) return fail(ErrorCode::not_found, "hidden detail");
        return found->second;
    };
}

TEST(HeaderRules, WhatMayBeSet) {
    for (const HeaderRule& rule : {HeaderRule{"Authorization", "Bearer ${e2b.secrets.token}"},
                                   {"X", ""},
                                   {"x-a_b.c", "${HOME} $e2b. {e2b.}"},
                                   {"X", "${e2b.secrets.A_b-9}${e2b.secrets.A_b-9}"},
                                   {"X", "tab\tand \xc3\xa9"},
                                   {"X", "${e2b"},
                                   {"Proxy", "x"},
                                   {"Cookie", "a=b"},
                                   {"X", std::string(kLongestHeaderValue, 'x')}})
        EXPECT_TRUE(check_rules({rule})) << rule.name << ": " << rule.value;
    EXPECT_TRUE(check_rules(Rules(kMostHeaderRules, {"X", "1"})));
}

TEST(HeaderRules, WhatMayNotBeSet) {
    using std::string_literals::operator""s;
    for (const std::string& name : {"Host"s,
                                    "host"s,
                                    "Content-Length"s,
                                    "Transfer-Encoding"s,
                                    "Connection"s,
                                    "Upgrade"s,
                                    "Keep-Alive"s,
                                    "TE"s,
                                    "Trailer"s,
                                    "Expect"s,
                                    "HTTP2-Settings"s,
                                    "Proxy-Authorization"s,
                                    "proxy-x"s,
                                    ""s,
                                    "a b"s,
                                    "a:"s,
                                    ":path"s,
                                    "a\r\nb"s,
                                    "a\0b"s,
                                    "\xc3\xa9"s,
                                    std::string(257, 'x')}) {
        const Status checked = check_rules({{name, "hidden value"}});
        ASSERT_FALSE(checked) << name;
        EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(checked.error().message.find("hidden"), std::string::npos);
        EXPECT_EQ(checked.error().message.find_first_of("\r\n\0"s), std::string::npos);
    }
    for (const std::string& value :
         {"hidden\r\nX: y"s, "hidden\n"s, "hidden\r"s, "hidden\0"s, "hidden\x01"s, "hidden\x7f"s,
          "hidden ${e2b.secrets.a"s, "hidden ${e2b."s, "hidden ${e2b.}"s, "hidden ${e2b.secrets.}"s,
          "hidden ${e2b.identity.tokens.a}"s, "hidden ${e2b.secrets.a b}"s,
          "hidden ${e2b.secrets.${e2b.secrets.a}}"s, "hidden ${e2b.secrets."s + std::string(129, 'x') + "}",
          "hidden ${e2b.Secrets.a}"s, std::string(kLongestHeaderValue + 1, 'x')}) {
        const Status checked = check_rules({{"X", value}});
        ASSERT_FALSE(checked) << value;
        EXPECT_EQ(checked.error().message.find("hidden"), std::string::npos);
    }
    EXPECT_FALSE(check_rules(Rules(kMostHeaderRules + 1, {"X", "1"})));
}

TEST(HeaderRules, NamesOfSecretsEachOnce) {
    const Rules rules{{"A", "${e2b.secrets.b} ${e2b.secrets.a}"}, {"B", "${e2b.secrets.b}"}, {"C", "plain"}};
    EXPECT_EQ(secret_names(rules), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(secret_names({}).empty());
}

TEST(HeaderRules, ReplaceAllOfTheirName) {
    http::Headers headers{{"authorization", "mine"}, {"Accept", "a"}, {"AUTHORIZATION", "too"}};
    ASSERT_TRUE(apply({{"Authorization", "Bearer ${e2b.secrets.t}-${e2b.secrets.t}"}, {"X", "1"}, {"x", "2"}},
                      headers, secrets({{"t", "abc"}})));
    EXPECT_EQ(headers.items(),
              (http::Headers{{"Accept", "a"}, {"Authorization", "Bearer abc-abc"}, {"x", "2"}}.items()));
}

TEST(HeaderRules, AValueOfASecretIsNotLookedAtAgain) {
    http::Headers headers;
    ASSERT_TRUE(
        apply({{"X", "${e2b.secrets.a}"}}, headers, secrets({{"a", "${e2b.secrets.b}"}, {"b", "no"}})));
    EXPECT_EQ(headers.get("X"), "${e2b.secrets.b}");
}

TEST(HeaderRules, NothingChangesWhenOneFails) {
    using std::string_literals::operator""s;
    const http::Headers before{{"A", "mine"}, {"X", "mine"}};
    for (const std::string& value : {"hidden\r\nHost: evil"s, "hidden\n"s, "hidden\0"s, "hidden\x02"s,
                                     std::string(kLongestExpandedValue + 1, 'h')}) {
        http::Headers headers = before;
        const Status applied =
            apply({{"A", "1"}, {"X", "${e2b.secrets.bad}"}}, headers, secrets({{"bad", value}}));
        ASSERT_FALSE(applied);
        EXPECT_EQ(headers.items(), before.items());
        EXPECT_EQ(applied.error().message.find("hidden"), std::string::npos);
        EXPECT_NE(applied.error().message.find("bad"), std::string::npos);
        EXPECT_LT(applied.error().message.size(), 200U);
    }
    http::Headers headers = before;
    const Status missing = apply({{"A", "1"}, {"X", "${e2b.secrets.none}"}}, headers, secrets({}));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message, "header \"X\": the secret \"none\" cannot be had");
    EXPECT_FALSE(apply({{"X", "${e2b.secrets.none}"}}, headers, {})) << "nobody to ask";
    EXPECT_FALSE(apply({{"Host", "evil"}}, headers, {}));
    EXPECT_EQ(headers.items(), before.items());
}

}  // namespace
}  // namespace gb::egress
