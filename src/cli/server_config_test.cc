// SPDX-License-Identifier: Apache-2.0
#include "cli/server_config.h"

#include <gtest/gtest.h>

namespace gb::cli {
namespace {

TEST(ServerConfig, NothingIsTheDefaults) {
    auto config = parse_server_config("", "config");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->plans.of("hobby").max_sandboxes, 20);
    EXPECT_EQ(config->plans.of("pro").max_sandboxes, 100);
    EXPECT_EQ(config->prices.vcpu_second_nano, 14'000);
    EXPECT_EQ(config->prices.gib_second_nano, 4'500);
    EXPECT_EQ(config->retention.paused_ms, 30LL * 86'400'000);
    EXPECT_EQ(config->retention.snapshots_ms, 30LL * 86'400'000);
    EXPECT_EQ(config->retention.warn_ms, 3LL * 86'400'000);
    EXPECT_EQ(parse_server_config("[retention]\npaused_days = 1e-12", "c")->retention.paused_ms,
              1);  // not for ever
    EXPECT_FALSE(config->tls);
    EXPECT_FALSE(config->port);
}

TEST(ServerConfig, TakesWhatItSays) {
    auto config = parse_server_config(R"(
        listen = "0.0.0.0"
        port = 8080
        domain = "box.example.com"
        retention_days = 30
        [retention]
        paused_days = 90
        snapshots_days = 0
        warn_days = 0.5
        [tls]
        certificate = "/etc/cert.pem"
        key = "/etc/key.pem"
        port = 8443
        [plans.pro]
        max_sandboxes = 600
        [plans.huge]
        max_sandboxes = 5000
        max_lifetime_s = 604800
        creates_per_second = 50
        [prices]
        vcpu_second = 0.00002
        gib_second = 0
        [webhooks]
        allow_private = true
    )",
                                      "config");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(*config->port, 8080);
    EXPECT_EQ(config->tls->port, 8443);
    EXPECT_EQ(config->tls->key, "/etc/key.pem");
    EXPECT_EQ(config->plans.of("pro").max_sandboxes, 600);
    EXPECT_EQ(config->plans.of("pro").max_lifetime_s, 24 * 3600);  // what is not named stays
    EXPECT_EQ(config->plans.of("huge").creates_per_second, 50);
    EXPECT_EQ(config->prices.vcpu_second_nano, 20'000);
    EXPECT_EQ(config->prices.gib_second_nano, 0);
    EXPECT_TRUE(config->webhooks_to_private);
    EXPECT_EQ(config->retention.paused_ms, 90LL * 86'400'000);
    EXPECT_EQ(config->retention.snapshots_ms, 0);
    EXPECT_EQ(config->retention.warn_ms, 43'200'000);
}

TEST(ServerConfig, AMistakeIsNamedAndNothingIsGuessed) {
    for (auto [text, part] : std::initializer_list<std::pair<const char*, const char*>>{
             {"nonsense", "line 1"},
             {"prot = 1", "'prot' is no setting"},
             {"port = 70000", "'port'"},
             {"port = \"3000\"", "'port'"},
             {"port = true", "'port'"},
             {"domain = \"Box.Example\"", "'domain'"},
             {"domain = \"a b\"", "'domain'"},
             {"[plans.pro]\nmax_sandbox = 5", "'plans.pro.max_sandbox' is no setting"},
             {"[plans.pro]\nmax_sandboxes = -1", "'plans.pro.max_sandboxes'"},
             {"[plans.pro]\ncreates_per_second = 0", "'plans.pro.creates_per_second'"},
             {"[plans.pro]\ncreates_per_second = nan", "'plans.pro.creates_per_second'"},
             {"plans = 3", "'plans'"},
             {"pool = 3", "'pool'"},
             {"[pool]\nmost = -1", "'pool.most'"},
             {"[pool]\nmost = 1001", "'pool.most'"},
             {"[pool]\nmost = 2.5", "'pool.most'"},
             {"[pool]\nleast = true", "'pool.least'"},
             {"[pool]\nsize = 1", "'pool.size' is no setting"},
             {"[pool]\ntemplates = 1", "'pool.templates'"},
             {"[pool.templates]\nbase = 1", "'pool.templates.base'"},
             {"[pool.templates.base]\nmin = 1", "'pool.templates.base.min' is no setting"},
             {"[pool.templates.base]\nleast = \"1\"", "'pool.templates.base.least'"},
             {"[prices]\nvcpu_second = -1", "'prices.vcpu_second'"},
             {"[retention]\npaused_days = -1", "'retention.paused_days'"},
             {"[retention]\nwarn_days = \"3\"", "'retention.warn_days'"},
             {"[retention]\nsnapshots_days = true", "'retention.snapshots_days'"},
             {"[retention]\ndays = 3", "'retention.days' is no setting"},
             {"[tls]\nport = 1", "needs 'domain'"},
             {"domain = \"a.b\"\n[tls]\nport = 1", "'tls.certificate'"},
             {"[webhooks]\nallow_private = 1", "'webhooks.allow_private'"}}) {
        auto config = parse_server_config(text, "config");
        ASSERT_FALSE(config) << text;
        EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
        EXPECT_TRUE(config.error().message.starts_with("config")) << config.error().message;
    }
}

TEST(Pool, WhatIsNotSaidIsTheCommandLinesOrTheDefault) {
    const PoolConfig none = parse_server_config("", "config")->pool;
    EXPECT_EQ(warm_options(none, std::nullopt)->standard, (WarmLimits{0, 4}));
    EXPECT_EQ(warm_options(none, 9)->standard, (WarmLimits{0, 9}));
    EXPECT_FALSE(warm_options(none, 0)->any());

    const PoolConfig some = parse_server_config(R"(
        [pool]
        least = 1
        most = 6
        [pool.templates.code-interpreter-v1]
        least = 2
        [pool.templates.base]
        most = 0
    )", "config")->pool;
    auto options = warm_options(some, 9);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->of("other"), (WarmLimits{1, 6}));
    EXPECT_EQ(options->of("code-interpreter-v1"), (WarmLimits{2, 6}));
    EXPECT_EQ(options->of("base").most, 0U);
}

TEST(Pool, TheLeastIsNotAboveTheMost) {
    const PoolConfig five = parse_server_config("[pool]\nleast = 5", "config")->pool;
    EXPECT_EQ(warm_options(five, std::nullopt).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(warm_options(five, 5)->standard, (WarmLimits{5, 5}));
    EXPECT_FALSE(warm_options(five, 0)->any()) << "no pool at all";
    auto own = warm_options(parse_server_config("[pool.templates.base]\nleast = 5", "config")->pool, std::nullopt);
    ASSERT_FALSE(own);
    EXPECT_NE(own.error().message.find("'pool.templates.base.least'"), std::string::npos) << own.error().message;
}

TEST(Plans, AnUnknownPlanIsTheTightest) {
    Plans plans;
    EXPECT_EQ(plans.of("nope").name, "hobby");
    EXPECT_EQ(plans.find("nope"), nullptr);
}

TEST(ServerConfig, TemplatesArePreparedOnDemandUnlessItSaysOtherwise) {
    EXPECT_TRUE(parse_server_config("", "c")->prepare_on_demand);
    EXPECT_FALSE(parse_server_config("[templates]\nprepare_on_demand = false", "c")->prepare_on_demand);
    EXPECT_FALSE(parse_server_config("[templates]\nprepare_on_demand = 1", "c"));
}

TEST(EgressConfig, NothingIsOpenWithTheUsualLimits) {
    auto config = parse_server_config("", "c");
    ASSERT_TRUE(config);
    auto options = network_options(config->egress, std::nullopt);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->ceiling, net::Ceiling());
    EXPECT_EQ(options->slot.max_connections, 2500U);
    EXPECT_EQ(options->slot.upload_bytes_s, 0U);
    EXPECT_EQ(options->decisions_days, 30);
    EXPECT_TRUE(options->resolvers.empty() && options->trusted.empty());
}

TEST(EgressConfig, TakesWhatItSays) {
    auto config = parse_server_config(R"(
        [egress]
        mode = "closed"
        closed = ["9.9.9.9", "203.0.113.0/24", "Evil.example.com", "*.bad.example", "2001:db8::/32"]
        open = ["1.1.1.1", "pypi.org", "*.pythonhosted.org"]
        resolvers = ["1.1.1.1", "9.9.9.9:5353"]
        trusted_ca = "/etc/ca.pem"
        max_connections = 100
        upload_mbit = 8
        download_mbit = 100
        keep_decisions_days = 90
    )",
                                      "c");
    ASSERT_TRUE(config) << config.error().message;
    auto options = network_options(config->egress, std::nullopt);
    ASSERT_TRUE(options) << options.error().message;
    const net::Ceiling& ceiling = options->ceiling;
    EXPECT_TRUE(ceiling.only_listed);
    ASSERT_EQ(ceiling.closed.size(), 2U);
    EXPECT_EQ(to_string(ceiling.closed[1]), "203.0.113.0/24");
    ASSERT_EQ(ceiling.closed_names.size(), 2U);
    EXPECT_EQ(to_string(ceiling.closed_names[0]), "evil.example.com");
    EXPECT_EQ(ceiling.open.size(), 1U);
    ASSERT_EQ(ceiling.open_names.size(), 2U);
    EXPECT_EQ(to_string(ceiling.open_names[1]), "*.pythonhosted.org");
    EXPECT_EQ(options->resolvers, (std::vector<std::string>{"1.1.1.1", "9.9.9.9:5353"}));
    EXPECT_EQ(options->trusted, "/etc/ca.pem");
    EXPECT_EQ(options->slot.max_connections, 100U);
    EXPECT_EQ(options->slot.upload_bytes_s, 1'000'000U);
    EXPECT_EQ(options->slot.download_bytes_s, 12'500'000U);
    EXPECT_EQ(options->decisions_days, 90);
}

TEST(EgressConfig, TheCommandLineGoesFirstAndKeepsTheLists) {
    auto config = parse_server_config("[egress]\nopen = [\"pypi.org\"]\nclosed = [\"9.9.9.9\"]", "c");
    ASSERT_TRUE(config);
    auto silent = network_options(config->egress, std::nullopt);
    ASSERT_FALSE(silent) << "who lists what is open does not want everything open";
    EXPECT_NE(silent.error().message.find("egress.mode"), std::string::npos);
    auto closed = network_options(config->egress, EgressMode::closed);
    ASSERT_TRUE(closed);
    EXPECT_TRUE(closed->ceiling.only_listed);
    EXPECT_EQ(closed->ceiling.open_names.size(), 1U);
    auto open = network_options(config->egress, EgressMode::open);
    ASSERT_TRUE(open);
    EXPECT_FALSE(open->ceiling.only_listed);
    EXPECT_EQ(open->ceiling.closed.size(), 1U);
    config->egress.mode = EgressMode::closed;
    EXPECT_FALSE(network_options(config->egress, EgressMode::open)->ceiling.only_listed);
    EXPECT_TRUE(network_options(config->egress, std::nullopt)->ceiling.only_listed);
}

TEST(EgressConfig, WhatCannotBeReadIsRefusedWithItsName) {
    for (auto [text, name] : std::initializer_list<std::pair<const char*, const char*>>{
             {"mode = \"shut\"", "egress.mode"},
             {"mode = true", "egress.mode"},
             {"closed = \"9.9.9.9\"", "egress.closed"},
             {"closed = [1]", "egress.closed"},
             {"closed = [\"9.9.9.9/99\"]", "egress.closed"},
             {"closed = [\"a..b\"]", "egress.closed"},
             {"mode = \"closed\"\nopen = [\"http://x\"]", "egress.open"},
             {"resolvers = [\"dns.example.com\"]", "egress.resolvers"},
             {"resolvers = [\"::1\"]", "egress.resolvers"},
             {"resolvers = [\"1.1.1.1:0\"]", "egress.resolvers"},
             {"max_connections = 0", "egress.max_connections"},
             {"upload_mbit = -1", "egress.upload_mbit"},
             {"download_mbit = 1.5", "egress.download_mbit"},
             {"keep_decisions_days = 0", "egress.keep_decisions_days"},
             {"trusted_ca = 1", "egress.trusted_ca"},
             {"close = []", "egress.close"}}) {
        auto config = parse_server_config(std::string("[egress]\n") + text, "c");
        ASSERT_FALSE(config) << text;
        EXPECT_NE(config.error().message.find(name), std::string::npos) << config.error().message;
    }
}

}  // namespace
}  // namespace gb::cli
