// SPDX-License-Identifier: Apache-2.0
#include "egress/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gb::egress {
namespace {

std::string shown(const Plan& plan) {
    const char* const kWays[] = {"refuse", "direct", "resolved", "intercepted"};
    return fmt::format("{} {} {}", kWays[static_cast<int>(plan.way)], plan.rule, plan.headers.size());
}

TEST(Plan, Ways) {
    using net::NetworkRequest;
    const NetworkRequest open{};
    const NetworkRequest names{.allow_out = {"ok.com", "*.sub.com", "9.9.9.9"}, .deny_out = {"0.0.0.0/0"}};
    const NetworkRequest headers{.rules = {{"api.com", {{"A", "b"}}}}};
    const NetworkRequest both{.allow_out = {"api.com", "9.9.9.9"},
                              .deny_out = {"0.0.0.0/0"},
                              .rules = {{"api.com", {{"A", "b"}}}, {"other.com", {{"A", "b"}}}}};
    const NetworkRequest partial{.deny_out = {"5.0.0.0/8"}, .rules = {{"api.com", {{"A", "b"}}}}};
    const net::Ceiling none{};
    const net::Ceiling shut{.closed_names = {*net::parse_pattern("evil.com")}};
    const net::Ceiling listed{.only_listed = true, .open_names = {*net::parse_pattern("ok.com")}};
    struct Case {
        const char* what;
        const NetworkRequest& request;
        const net::Ceiling& ceiling;
        const char *address, *name, *expected;
    };
    const Case kCases[] = {
        {"listed name", names, none, "5.5.5.5", "ok.com", "resolved allow ok.com 0"},
        {"listed wildcard", names, none, "5.5.5.5", "a.sub.com", "resolved allow *.sub.com 0"},
        {"other name", names, none, "5.5.5.5", "evil.com", "refuse deny 0.0.0.0/0 0"},
        {"N4 no name", names, none, "5.5.5.5", nullptr, "refuse no-name 0"},
        {"listed address", names, none, "9.9.9.9", nullptr, "direct allow 9.9.9.9 0"},
        {"listed address, any name", names, none, "9.9.9.9", "evil.com", "direct allow 9.9.9.9 0"},
        {"private, whatever the name", names, none, "10.0.0.1", "ok.com", "refuse private 0"},
        {"private without a name", names, none, "10.0.0.1", nullptr, "refuse private 0"},
        {"open", open, none, "5.5.5.5", "x.com", "direct default 0"},
        {"headers", headers, none, "5.5.5.5", "api.com", "intercepted default 1"},
        {"headers, another host", headers, none, "5.5.5.5", "x.com", "direct default 0"},
        {"headers, no name", headers, none, "5.5.5.5", nullptr, "direct default 0"},
        {"headers for an allowed name", both, none, "5.5.5.5", "api.com", "intercepted allow api.com 1"},
        {"headers do not open a name", both, none, "5.5.5.5", "other.com", "refuse deny 0.0.0.0/0 0"},
        {"headers at a listed address", both, none, "9.9.9.9", "other.com", "intercepted allow 9.9.9.9 1"},
        {"headers and a denied address", partial, none, "5.5.5.5", "api.com", "refuse deny 5.0.0.0/8 0"},
        {"closed name", open, shut, "5.5.5.5", "evil.com", "refuse closed evil.com 0"},
        {"closed name at a listed address", names, shut, "9.9.9.9", "evil.com", "refuse closed evil.com 0"},
        {"only listed", open, listed, "5.5.5.5", "ok.com", "resolved default 0"},
        {"only listed, another", open, listed, "5.5.5.5", "x.com", "refuse closed 0"},
        {"only listed, no name", open, listed, "5.5.5.5", nullptr, "refuse no-name 0"},
        {"only listed, client's list", names, listed, "9.9.9.9", "x.com", "refuse closed 0"},
    };
    for (const Case& c : kCases) {
        auto policy = net::parse_policy(c.request);
        ASSERT_TRUE(policy) << policy.error().message;
        std::optional<std::string_view> name;
        if (c.name != nullptr) name = c.name;
        EXPECT_EQ(shown(plan(*policy, c.ceiling, *net::parse_ipv4(c.address), name)), c.expected) << c.what;
    }
    auto policy = net::parse_policy(names);
    const net::Ipv4 stand_in = *net::parse_ipv4("198.18.0.1");
    EXPECT_EQ(shown(plan(*policy, none, stand_in, "ok.com", true)), "resolved allow ok.com 0");
    EXPECT_EQ(shown(plan(*policy, none, stand_in, "evil.com", true)), "refuse deny 0.0.0.0/0 0");
    EXPECT_EQ(shown(plan(*policy, none, stand_in, std::nullopt, true)), "refuse no-name 0");
}

}  // namespace
}  // namespace gb::egress
