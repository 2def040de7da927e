// SPDX-License-Identifier: Apache-2.0
#include "base/file_signature.h"

#include <gtest/gtest.h>

#include "base/crypto.h"

namespace gb {
namespace {

// Contract 3.6, computed step by step.
TEST(Signature, IsTheContractsHash) {
    std::string expected = base64_encode(sha256("/home/user/a b.txt:read:user:secret:1700000000"));
    while (expected.ends_with('=')) expected.pop_back();
    EXPECT_EQ(sign_url("/home/user/a b.txt", FileOperation::read, "user", "secret", 1700000000),
              "v1_" + expected);
    EXPECT_NE(sign_url("p", FileOperation::read, "", "t", {}),
              sign_url("p", FileOperation::write, "", "t", {}));
}

Status check(const std::string* signature, const std::string* expiration, std::int64_t now) {
    return check_signature({"p", "", signature, expiration}, FileOperation::read, "token", now);
}

TEST(Signature, AcceptsItsOwn) {
    const std::string plain = sign_url("p", FileOperation::read, "", "token", {});
    EXPECT_TRUE(check(&plain, nullptr, 5));
    const std::string limited = sign_url("p", FileOperation::read, "", "token", 100);
    const std::string expiration = "100";
    EXPECT_TRUE(check(&limited, &expiration, 100));
}

TEST(Signature, RefusesWithTheContractsTexts) {
    EXPECT_EQ(check(nullptr, nullptr, 5).error().message, "missing signature query parameter");
    const std::string wrong = "v1_abc", expiration = "100", text = "soon";
    EXPECT_EQ(check(&wrong, nullptr, 5).error().message, "invalid signature");
    EXPECT_EQ(check(&wrong, nullptr, 5).error().code, ErrorCode::unauthenticated);
    const std::string limited = sign_url("p", FileOperation::read, "", "token", 100);
    EXPECT_EQ(check(&limited, &expiration, 101).error().message, "signature is already expired");
    EXPECT_EQ(check(&limited, nullptr, 5).error().message, "invalid signature");  // the limit taken off
    EXPECT_EQ(check(&limited, &text, 5).error().code, ErrorCode::invalid_argument);
}

// The same text is signed for reading "a:write:b" as "c" and for writing "a" as "b:read:c".
TEST(Signature, MeansOnePathAndOneDirection) {
    const std::string signature = sign_url("a:write:b", FileOperation::read, "c", "token", {});
    EXPECT_EQ(signature, sign_url("a", FileOperation::write, "b:read:c", "token", {}));
    EXPECT_TRUE(check_signature({"a:write:b", "c", &signature, nullptr}, FileOperation::read, "token", 5));
    EXPECT_EQ(check_signature({"a", "b:read:c", &signature, nullptr}, FileOperation::write, "token", 5)
                  .error()
                  .message,
              "invalid signature");
}

}  // namespace
}  // namespace gb
