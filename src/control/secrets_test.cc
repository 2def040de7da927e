// SPDX-License-Identifier: Apache-2.0
#include "control/secrets.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "control/store_fixture.h"

namespace gb {
namespace {

class SecretsTest : public StoreFixture {
  protected:
    void SetUp() override {
        ASSERT_NO_FATAL_FAILURE(StoreFixture::SetUp());
        ASSERT_TRUE(store_->add_team({"t1", "One", "one", "pro"}));
        ASSERT_TRUE(store_->add_team({"t2", "Two", "two", "pro"}));
        SandboxRecord mine, other;
        mine.id = "i1";
        mine.team_id = "t1";
        other.id = "i2";
        other.team_id = "t2";
        ASSERT_TRUE(store_->commit({.put_sandboxes = {mine, other}}));
    }
    const Sealer sealer_ = Sealer(random_bytes(32));
};

TEST_F(SecretsTest, AValueReachesTheSandboxesOfItsTeamAndNobodyElse) {
    Secrets secrets(*store_, sealer_);
    auto made = secrets.create("t1", "OpenAI-Key", "sk-value", {{"env", "test"}});
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->id.starts_with("sec_"));
    EXPECT_EQ(made->name, "openai-key");
    EXPECT_EQ(made->version, 1);
    EXPECT_EQ(made->sealed.find("sk-value"), std::string::npos);
    EXPECT_EQ(secrets.value_for("i1", "openai-key"), "sk-value");
    EXPECT_EQ(secrets.value_for("i1", "OPENAI-KEY"), "sk-value");
    for (auto [sandbox, name] : std::initializer_list<std::pair<const char*, const char*>>{
             {"i2", "openai-key"}, {"i3", "openai-key"}, {"i1", "other"}, {"", ""}})
        EXPECT_EQ(secrets.value_for(sandbox, name).error().code, ErrorCode::not_found) << sandbox;
    EXPECT_EQ(secrets.value_for("i1", made->id).error().code, ErrorCode::not_found);
    EXPECT_EQ(secrets.get("t1", made->id)->name, "openai-key");
    EXPECT_EQ(secrets.get("t1", "OpenAI-key")->id, made->id);
    EXPECT_EQ(secrets.get("t2", made->id).error().code, ErrorCode::not_found);
    EXPECT_EQ(secrets.update("t2", made->id, "x", {}).error().code, ErrorCode::not_found);
    EXPECT_EQ(secrets.remove("t2", made->id).error().code, ErrorCode::not_found);
    EXPECT_EQ(secrets.create("t1", "openai-KEY", "y", {}).error().code, ErrorCode::already_exists);
    EXPECT_TRUE(secrets.create("t2", "openai-key", "y", {}));
}

TEST_F(SecretsTest, AnUpdateCountsFromTheNextUseAndKeepsWhatItDoesNotName) {
    Secrets secrets(*store_, sealer_);
    ASSERT_TRUE(secrets.create("t1", "key", "v1", {{"a", "b"}}));
    auto next = secrets.update("t1", "key", "v2", std::nullopt);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->version, 2);
    EXPECT_EQ(next->metadata.at("a"), "b");
    EXPECT_EQ(secrets.value_for("i1", "key"), "v2");
    EXPECT_TRUE(secrets.update("t1", "key", "v3", Metadata())->metadata.empty());
    ASSERT_TRUE(secrets.remove("t1", "key"));
    EXPECT_EQ(secrets.value_for("i1", "key").error().code, ErrorCode::not_found);
    EXPECT_EQ(secrets.update("t1", "key", "v4", {}).error().code, ErrorCode::not_found);
}

TEST_F(SecretsTest, UpdatesAtOnceAllCountAndReadersNeverSeeHalfOfOne) {
    Secrets secrets(*store_, sealer_);
    ASSERT_TRUE(secrets.create("t1", "key", "v", {}));
    std::atomic<int> updated = 0, bad = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i)
                updated += secrets.update("t1", "key", "v" + std::to_string(i), {}) ? 1 : 0;
        });
    threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) bad += secrets.value_for("i1", "key") ? 0 : 1;
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(updated, 15);
    EXPECT_EQ(bad, 0);
    EXPECT_EQ(secrets.get("t1", "key")->version, 16);
}

TEST_F(SecretsTest, ALostKeyIsAClearErrorAtUse) {
    ASSERT_TRUE(Secrets(*store_, sealer_).create("t1", "key", "the-value", {}));
    const Sealer other(random_bytes(32));
    Secrets secrets(*store_, other);
    auto value = secrets.value_for("i1", "key");
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, ErrorCode::failed_precondition);
    EXPECT_NE(value.error().message.find("'key'"), std::string::npos) << value.error().message;
    EXPECT_TRUE(secrets.get("t1", "key"));
    ASSERT_TRUE(secrets.update("t1", "key", "anew", {}));
    EXPECT_EQ(secrets.value_for("i1", "key"), "anew");
}

TEST_F(SecretsTest, ARowOfAnotherSecretCannotBeReadAsThisOne) {
    Secrets secrets(*store_, sealer_);
    auto one = secrets.create("t1", "one", "first", {});
    auto two = secrets.create("t2", "two", "second", {});
    ASSERT_TRUE(one && two);
    SecretRecord forged = *one;
    forged.version = 2;
    forged.sealed = two->sealed;
    ASSERT_TRUE(store_->update_secret(forged));
    EXPECT_EQ(secrets.value_for("i1", "one").error().code, ErrorCode::failed_precondition);
}

TEST_F(SecretsTest, WhatIsNoNameNoValueOrTooMuchIsRefusedWithoutTheValue) {
    Secrets secrets(*store_, sealer_);
    const std::string long_name(129, 'a');
    for (const char* name : {"", "a b", "a.b", "a}", "sec_x", "SEC_x", "ä", "a\n", long_name.c_str()})
        EXPECT_EQ(secrets.create("t1", name, "the-value", {}).error().code, ErrorCode::invalid_argument)
            << name;
    for (const std::string& value :
         {std::string(), std::string("q9x-value\n"), std::string("q9x\rvalue"), std::string("q9x\0value", 9),
          std::string("q9x-value\x7f"), std::string(kLongestSecretValue + 1, 'x')}) {
        auto made = secrets.create("t1", "a", value, {});
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().message.find("q9x"), std::string::npos);
    }
    Metadata many, big;
    for (int i = 0; i < 33; ++i) many["k" + std::to_string(i)] = "";
    for (int i = 0; i < 9; ++i) big["k" + std::to_string(i)] = std::string(1000, 'x');
    for (const Metadata& metadata :
         {many, big, Metadata{{"k", std::string(1025, 'x')}}, Metadata{{std::string(129, 'x'), ""}}})
        EXPECT_EQ(secrets.create("t1", "a", "x", metadata).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(store_->count_secrets("t1"), 0U);
    EXPECT_TRUE(secrets.create("t1", std::string(128, 'a'), "tab\there \xc3\xa9", {}));
}

TEST_F(SecretsTest, RulesNameOnlyWhatThereIs) {
    Secrets secrets(*store_, sealer_);
    auto made = secrets.create("t1", "one", "x", {});
    ASSERT_TRUE(made);
    EXPECT_TRUE(secrets.check_known("t1", {}));
    EXPECT_TRUE(secrets.check_known("t1", {"one", "ONE"}));
    for (const std::string& name : {std::string("two"), made->id, std::string("a b")}) {
        auto checked = secrets.check_known("t1", {"one", name});
        ASSERT_FALSE(checked) << name;
        EXPECT_NE(checked.error().message.find("'" + name + "'"), std::string::npos)
            << checked.error().message;
    }
    EXPECT_FALSE(secrets.check_known("t2", {"one"}));
}

}  // namespace
}  // namespace gb
