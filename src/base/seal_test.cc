// SPDX-License-Identifier: Apache-2.0
#include "base/seal.h"

#include <set>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

class SealTest : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(make_dirs(dir_)); }
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-seal-" + random_id(10));
};

TEST_F(SealTest, WhatWasSealedComesBackWhole) {
    const Sealer sealer(random_bytes(32));
    for (const std::string& text :
         {std::string(), std::string("x"), std::string("a\0b\xff", 4), std::string(100'000, 'y')}) {
        auto sealed = sealer.seal(text, "team secret 1");
        ASSERT_TRUE(sealed);
        EXPECT_EQ(sealer.unseal(*sealed, "team secret 1"), text);
    }
    EXPECT_TRUE(sealer.unseal(*sealer.seal("x", ""), ""));
    EXPECT_FALSE(sealer.seal(std::string(2'000'000, 'x'), ""));
}

TEST_F(SealTest, ItBelongsToOnePlaceOneKeyAndCannotBeChanged) {
    const Sealer sealer(random_bytes(32)), other(random_bytes(32));
    const std::string sealed = *sealer.seal("the-value", "t1 s1 1");
    EXPECT_EQ(sealed.find("the-value"), std::string::npos);
    for (const char* place : {"t1 s1 2", "t2 s1 1", "", "t1 s1 1 "})
        EXPECT_EQ(sealer.unseal(sealed, place).error().code, ErrorCode::failed_precondition) << place;
    EXPECT_EQ(other.unseal(sealed, "t1 s1 1").error().code, ErrorCode::failed_precondition);
    const std::string raw = *base64url_decode(sealed);
    for (std::size_t i = 0; i < raw.size(); ++i) {
        std::string changed = raw;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        EXPECT_FALSE(sealer.unseal(base64url_encode(changed), "t1 s1 1")) << i;
        EXPECT_FALSE(sealer.unseal(base64url_encode(raw.substr(0, i)), "t1 s1 1")) << i;
    }
    for (const char* text : {"", "!", "AQ"}) EXPECT_FALSE(sealer.unseal(text, "t1 s1 1"));
}

TEST_F(SealTest, NoTwoAreTheSame) {
    const Sealer sealer(random_bytes(32));
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) seen.insert(*sealer.seal("same", "same"));
    EXPECT_EQ(seen.size(), 100U);
}

TEST_F(SealTest, TheKeyIsMadeOnceAndIsPrivate) {
    const auto file = dir_ / "secret-key";
    const std::string sealed = *Sealer::open(file).seal("x", "y");
    struct stat st{};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U);
    EXPECT_EQ(Sealer::open(file).unseal(sealed, "y"), "x");
}

TEST_F(SealTest, ALostOrBrokenKeyIsAnErrorOfUse) {
    const auto file = dir_ / "secret-key";
    const std::string sealed = *Sealer::open(file).seal("x", "y");
    ASSERT_TRUE(write_file_atomic(file, "not a key\n", 0600));
    const Sealer broken = Sealer::open(file);
    EXPECT_NE(broken.usable().error().message.find(file.string()), std::string::npos);
    EXPECT_EQ(broken.seal("x", "y").error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(broken.unseal(sealed, "y").error().code, ErrorCode::failed_precondition);
    std::filesystem::remove(file);
    const Sealer fresh = Sealer::open(file);
    EXPECT_TRUE(fresh.usable());
    EXPECT_NE(fresh.unseal(sealed, "y").error().message.find(file.string()), std::string::npos);
    EXPECT_FALSE(Sealer::open(dir_ / "no" / "folder").usable());
    EXPECT_FALSE(Sealer("short").usable());
}

}  // namespace
}  // namespace gb
