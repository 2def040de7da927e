// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/rpc.h"

#include <gtest/gtest.h>

#include "guest/agent/gzip.h"

namespace gb::agent {
namespace {

TEST(UnpackFrame, PlainAndCompressed) {
    EXPECT_EQ(unpack_frame({0, "text"}, "", 4), "text");
    EXPECT_EQ(unpack_frame({0, "text"}, "gzip", 4), "text");
    EXPECT_EQ(unpack_frame({http::kEnvelopeCompressed, gzip("text")}, "gzip", 4), "text");
    EXPECT_EQ(unpack_frame({http::kEnvelopeCompressed, ""}, "gzip", 4), "");
    EXPECT_EQ(unpack_frame({http::kEnvelopeCompressed, gzip("texts")}, "gzip", 4).error().code,
              ErrorCode::too_large);
    EXPECT_EQ(unpack_frame({http::kEnvelopeCompressed, "text"}, "gzip", 4).error().code,
              ErrorCode::invalid_argument);
    EXPECT_EQ(unpack_frame({http::kEnvelopeCompressed, gzip("text")}, "br", 4).error().code,
              ErrorCode::internal);
}

TEST(UnpackFrame, RequestsHaveNoOtherFlag) {
    for (std::uint8_t flags : {0x02, 0x03, 0x04, 0x80, 0x81})
        EXPECT_EQ(unpack_frame({flags, ""}, "gzip", 4).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gb::agent
