// SPDX-License-Identifier: Apache-2.0
#include "api/router.h"

#include <gtest/gtest.h>

namespace gb::api {
namespace {

Handler nothing() {
    return [](Call&) -> http::awaitable<Status> { co_return Status{}; };
}

TEST(Router, MatchesLiteralsBeforeParametersAndDecodes) {
    Router router;
    router.add("GET", "/sandboxes/{id}", nothing());
    router.add("GET", "/sandboxes/metrics", nothing(), Access::open);
    router.add("DELETE", "/sandboxes/{id}", nothing());
    auto match = [&](const char* method, const char* path) { return router.match(method, *http::parse_target(path)); };
    EXPECT_EQ(match("GET", "/sandboxes/i1")->params.at("id"), "i1");
    EXPECT_EQ(match("GET", "/sandboxes/a%2Fb/")->params.at("id"), "a/b");
    EXPECT_EQ(match("GET", "/sandboxes/metrics")->route->access, Access::open);
    EXPECT_EQ(match("DELETE", "/sandboxes/x")->route->method, "DELETE");
    EXPECT_EQ(match("PUT", "/sandboxes/x").error().code, ErrorCode::unimplemented);
    EXPECT_EQ(match("GET", "/nope").error().code, ErrorCode::not_found);
    EXPECT_EQ(match("GET", "/sandboxes/x/y").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb::api
