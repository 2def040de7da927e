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

TEST(Plans, AnUnknownPlanIsTheTightest) {
    Plans plans;
    EXPECT_EQ(plans.of("nope").name, "hobby");
    EXPECT_EQ(plans.find("nope"), nullptr);
}

}  // namespace
}  // namespace gb::cli
