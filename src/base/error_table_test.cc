// SPDX-License-Identifier: Apache-2.0
#include "base/error_table.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/error_body.h"

namespace gb {
namespace {

TEST(ErrorTable, EveryCodeHasItsOwnRow) {
    for (int i = 1; i <= 18; ++i) EXPECT_EQ(static_cast<int>(error_row(static_cast<ErrorCode>(i)).code), i);
}

TEST(ErrorTable, StatusesOfTheContract) {
    EXPECT_EQ(http_status(ErrorCode::not_found), 404);
    EXPECT_EQ(http_status(ErrorCode::no_space), 507);
    EXPECT_EQ(http_status(ErrorCode::unavailable), 503);
    EXPECT_EQ(connect_name(ErrorCode::deadline_exceeded), "deadline_exceeded");
    EXPECT_EQ(code_from_http(502), ErrorCode::unavailable);
    EXPECT_EQ(code_from_http(418), ErrorCode::internal);
}

TEST(Result, ErrnoDecidesTheCodeAndContextIsPrepended) {
    Error error = Error::from_errno(ENOENT, "open /x");
    EXPECT_EQ(error.code, ErrorCode::not_found);
    EXPECT_EQ(error.message, "open /x: No such file or directory");
    EXPECT_EQ(error.with("start").message, "start: open /x: No such file or directory");
    EXPECT_EQ(Error::from_errno(ENOSPC, "w").code, ErrorCode::no_space);
}

Status inner(bool ok) {
    if (!ok) return fail(ErrorCode::aborted, "no");
    return {};
}
Result<int> outer(bool ok) {
    GB_TRY(inner(ok));
    GB_TRY_ASSIGN(int value, Result<int>(3));
    return value;
}

TEST(Result, TryLeavesWithTheError) {
    EXPECT_EQ(*outer(true), 3);
    EXPECT_EQ(outer(false).error().code, ErrorCode::aborted);
}

TEST(ErrorBody, IsTheContracts) {
    EXPECT_EQ(error_body(404, "a \"b\""), R"({"code":404,"message":"a \"b\""})");
}

}  // namespace
}  // namespace gb
