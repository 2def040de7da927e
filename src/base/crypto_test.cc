// SPDX-License-Identifier: Apache-2.0
#include "base/crypto.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace gb {
namespace {

TEST(Crypto, KnownDigests) {
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    // RFC 4231, test case 2
    EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Crypto, Base64RoundTrips) {
    for (std::size_t n = 0; n < 70; ++n) {
        std::string bytes = random_bytes(n);
        EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
        EXPECT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
    }
    EXPECT_EQ(base64_encode("hello\n"), "aGVsbG8K");
    EXPECT_EQ(base64_decode("aGVsbG8"), "hello");
}

TEST(Crypto, Base64RefusesWhatIsNotCanonical) {
    for (auto text : {"a", "aGVsbG9", "aG Vs", "a-_b", "aGVsbG8K\n"}) {
        if (std::string_view(text) == "aGVsbG9") continue;
        EXPECT_EQ(base64_decode(text), std::nullopt) << text;
    }
    EXPECT_EQ(base64_decode("aGVsbG9"), std::nullopt);  // stray bits in the last letter
}

TEST(Crypto, ConstantTimeEqualCompares) {
    EXPECT_TRUE(constant_time_equal("", ""));
    EXPECT_TRUE(constant_time_equal("abc", "abc"));
    EXPECT_FALSE(constant_time_equal("abc", "abd"));
    EXPECT_FALSE(constant_time_equal("abc", "abcd"));
}

TEST(Ids, HaveTheirShapes) {
    EXPECT_EQ(sandbox_id().size(), 20U);
    EXPECT_EQ(sandbox_id()[0], 'i');
    EXPECT_EQ(random_hex(20).size(), 40U);
    std::string uuid = random_uuid();
    ASSERT_EQ(uuid.size(), 36U);
    EXPECT_EQ(uuid[14], '4');
    EXPECT_NE(random_id(20), random_id(20));
}

TEST(Crypto, PiecesHaveTheHashOfTheWhole) {
    Sha256 hash;
    for (const char* piece : {"", "a", "bc", ""}) hash.update(piece);
    EXPECT_EQ(hash.finish(), sha256("abc"));
    hash.update("abcd");
    EXPECT_EQ(hash.finish(), sha256("abcd"));
}

}  // namespace
}  // namespace gb
