// SPDX-License-Identifier: Apache-2.0
// For tests: a Result or Status that must be a success, with the error's message when it is none.
#pragma once

#include <gtest/gtest.h>

#define ASSERT_OK(expr)                                                  \
    do {                                                                 \
        auto&& gb_result = (expr);                                       \
        ASSERT_TRUE(gb_result.has_value()) << gb_result.error().message; \
    } while (false)
