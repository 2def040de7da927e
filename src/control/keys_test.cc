// SPDX-License-Identifier: Apache-2.0
#include "control/keys.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "control/store_fixture.h"

namespace gb {
namespace {

class KeysTest : public StoreFixture {
  protected:
    std::string key() { return read_file(dir_ / "key")->substr(0, 44); }
};

TEST_F(KeysTest, TheDefaultKeyIsMadeOnceAndWorks) {
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    std::string first = key();
    EXPECT_TRUE(first.starts_with("e2b_"));
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    EXPECT_EQ(key(), first);
    auto team = authenticate(*store_, first);
    ASSERT_TRUE(team);
    EXPECT_EQ(team->slug, "default");
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / "key").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST_F(KeysTest, TheStoreHoldsNoKey) {
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    std::string secret = key().substr(12, 20);
    for (const auto& file : std::filesystem::directory_iterator(dir_)) {
        if (file.path().filename() == "key") continue;
        EXPECT_EQ(read_file(file.path())->find(secret), std::string::npos) << file.path();
    }
}

TEST_F(KeysTest, ALostKeyFileGetsANewKey) {
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    std::string first = key();
    std::filesystem::remove(dir_ / "key");
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    EXPECT_NE(key(), first);
    EXPECT_TRUE(authenticate(*store_, first));
}

TEST_F(KeysTest, EverythingElseIsRefusedWithTheContractsWords) {
    ASSERT_TRUE(ensure_default_key(*store_, dir_ / "key"));
    for (std::string bad : {std::string(), std::string("e2b_"), "e2b_" + std::string(40, '0'), "E2B_" + std::string(40, '0'),
                            key() + "0", key().substr(0, 43) + "Z", std::string("' OR 1=1 --")}) {
        auto team = authenticate(*store_, bad);
        ASSERT_FALSE(team) << bad;
        EXPECT_EQ(team.error().code, ErrorCode::unauthenticated);
        EXPECT_NE(team.error().message.find("Invalid API key"), std::string::npos);
        if (bad.size() > 8) EXPECT_EQ(team.error().message.find(bad), std::string::npos) << "the key is in the error";
    }
}

TEST_F(KeysTest, TheOperatorsTokenIsMadeOnceAndOnlyItsHashLeaves) {
    auto hash = ensure_admin_token(dir_ / "admin-token");
    ASSERT_TRUE(hash);
    const std::string token = read_file(dir_ / "admin-token")->substr(0, 64);
    EXPECT_EQ(*hash, sha256_hex(token));
    EXPECT_EQ(*ensure_admin_token(dir_ / "admin-token"), *hash);
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / "admin-token").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U);
    ASSERT_TRUE(write_file_atomic(dir_ / "short", "x", 0600));
    EXPECT_NE(*ensure_admin_token(dir_ / "short"), sha256_hex("x"));  // too short to be one: replaced
}

}  // namespace
}  // namespace gb
