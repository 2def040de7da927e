// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace gb {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32c, HasTheValuesOfTheStandard) {  // RFC 3720, B.4
    EXPECT_EQ(crc32c({}), 0U);
    EXPECT_EQ(crc32c(bytes("123456789")), 0xe3069283U);
    EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8a9136aaU);
    EXPECT_EQ(crc32c(bytes(std::string(32, '\xff'))), 0x62a8ab43U);
}

TEST(Crc32c, BothWaysAndInPiecesAgree) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text.push_back(static_cast<char>(i * 37 + i / 251));
    for (std::size_t length : {0UL, 1UL, 7UL, 8UL, 9UL, 4096UL, text.size()}) {
        const std::string_view part = std::string_view(text).substr(0, length);
        EXPECT_EQ(crc32c(bytes(part)), crc32c_portable(bytes(part))) << length;
        for (std::size_t cut : {0UL, 3UL, length / 2})
            if (cut <= length)
                EXPECT_EQ(crc32c(bytes(part.substr(cut)), crc32c(bytes(part.substr(0, cut)))),
                          crc32c(bytes(part)));
    }
}

}  // namespace
}  // namespace gb
