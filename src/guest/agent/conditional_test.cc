// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/conditional.h"

#include <gtest/gtest.h>

#include "guest/agent/http_values.h"

namespace gb::agent {
namespace {

const FileVersion kVersion{"\"a,b\"", 1'000'000};
const std::string kThen = http_date(1'000'000);
const std::string kBefore = http_date(999'999);

Condition check(const std::string& name, const std::string& value) {
    return check_conditions({{name, value}}, kVersion);
}

TEST(Conditions, TagsAreComparedAsTheHeaderSays) {
    EXPECT_EQ(check("If-None-Match", "\"a,b\""), Condition::not_modified);
    EXPECT_EQ(check("If-None-Match", "\"x\", W/\"a,b\""), Condition::not_modified);
    EXPECT_EQ(check("If-None-Match", "*"), Condition::not_modified);
    EXPECT_EQ(check("If-None-Match", "\"a\", \"b\""), Condition::met);
    EXPECT_EQ(check("If-None-Match", "a,b"), Condition::met);
    EXPECT_EQ(check("If-None-Match", "\"a,b"), Condition::met);
    EXPECT_EQ(check("If-Match", "\"x\",\"a,b\""), Condition::met);
    EXPECT_EQ(check("If-Match", "W/\"a,b\""), Condition::failed);
    EXPECT_EQ(check("If-Match", "\"x\""), Condition::failed);
    EXPECT_EQ(check("If-Match", "*"), Condition::met);
}

TEST(Conditions, DatesCountInWholeSeconds) {
    EXPECT_EQ(check("If-Modified-Since", kThen), Condition::not_modified);
    EXPECT_EQ(check("If-Modified-Since", kBefore), Condition::met);
    EXPECT_EQ(check("If-Modified-Since", "yesterday"), Condition::met);
    EXPECT_EQ(check("If-Unmodified-Since", kThen), Condition::met);
    EXPECT_EQ(check("If-Unmodified-Since", kBefore), Condition::failed);
}

TEST(Conditions, ATagOutranksADate) {
    EXPECT_EQ(check_conditions({{"If-None-Match", "\"x\""}, {"If-Modified-Since", kThen}}, kVersion),
              Condition::met);
    EXPECT_EQ(check_conditions({{"If-Match", "*"}, {"If-Unmodified-Since", kBefore}}, kVersion),
              Condition::met);
}

TEST(Conditions, ARangeIsOfTheVersionThatWasMeant) {
    EXPECT_TRUE(range_applies({}, kVersion));
    EXPECT_TRUE(range_applies({{"If-Range", "\"a,b\""}}, kVersion));
    EXPECT_TRUE(range_applies({{"If-Range", kThen}}, kVersion));
    EXPECT_FALSE(range_applies({{"If-Range", kBefore}}, kVersion));
    EXPECT_FALSE(range_applies({{"If-Range", "W/\"a,b\""}}, kVersion));
    EXPECT_FALSE(range_applies({{"If-Range", "\"x\""}}, kVersion));
}

// As in /proc: there is something, and nobody knows which version of it.
TEST(Conditions, WithoutVersionsOnlyExistenceCounts) {
    const FileVersion none;
    EXPECT_EQ(check_conditions({{"If-None-Match", "\"\""}}, none), Condition::met);
    EXPECT_EQ(check_conditions({{"If-None-Match", "*"}}, none), Condition::not_modified);
    EXPECT_EQ(check_conditions({{"If-Modified-Since", kThen}}, none), Condition::met);
    EXPECT_EQ(check_conditions({{"If-Unmodified-Since", kThen}}, none), Condition::met);
    EXPECT_EQ(check_conditions({{"If-Match", "*"}}, none), Condition::met);
    EXPECT_EQ(check_conditions({{"If-Match", "\"\""}}, none), Condition::failed);
    EXPECT_TRUE(range_applies({}, none));
    for (const std::string& condition : {std::string(), std::string("\"\""), kThen})
        EXPECT_FALSE(range_applies({{"If-Range", condition}}, none));
}

}  // namespace
}  // namespace gb::agent
