// SPDX-License-Identifier: Apache-2.0
#include "node/zstd_stream.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace gb {
namespace {

std::string compressed(std::string_view text) {
    std::string out;
    ZstdWriter writer(3, [&](std::string_view bytes) -> Status {
        out += bytes;
        return {};
    });
    for (std::size_t at = 0; at < text.size(); at += 100'000)
        EXPECT_TRUE(writer.write(text.substr(at, 100'000)));
    EXPECT_TRUE(writer.finish());
    return out;
}

struct Reading {
    std::string text;
    bool complete = false;
    Status status;
};

Reading read(std::string_view bytes, std::size_t piece) {
    Reading out;
    ZstdReader reader([&](std::string_view plain) -> Status {
        out.text += plain;
        return {};
    });
    while (!bytes.empty() && out.status) {
        out.status = reader.feed(bytes.substr(0, piece));
        bytes.remove_prefix(std::min(piece, bytes.size()));
    }
    out.complete = reader.complete();
    return out;
}

TEST(ZstdStream, GivesBackWhatWasWritten) {
    const std::string text = random_bytes(300'000) + std::string(3'000'000, 'x');
    const std::string bytes = compressed(text);
    EXPECT_LT(bytes.size(), 400'000U);
    for (std::size_t piece : {std::size_t{1'000}, bytes.size()}) {
        const Reading reading = read(bytes, piece);
        EXPECT_TRUE(reading.status);
        EXPECT_TRUE(reading.complete);
        EXPECT_EQ(reading.text, text);
    }
}

TEST(ZstdStream, WhatIsNotWholeIsNotComplete) {
    const std::string bytes = compressed("some text that is long enough to be a stream of its own");
    const Reading half = read(std::string_view(bytes).substr(0, bytes.size() - 1), 7);
    EXPECT_TRUE(half.status);
    EXPECT_FALSE(half.complete);
    EXPECT_FALSE(read("", 1).complete);
}

TEST(ZstdStream, DamageAndWhatFollowsTheEndAreErrors) {
    std::string bytes = compressed("some text that is long enough to be a stream of its own");
    EXPECT_EQ(read(bytes + bytes, 1 << 20).status.error().code, ErrorCode::data_loss);
    EXPECT_EQ(read(bytes + "x", 1 << 20).status.error().code, ErrorCode::data_loss);
    bytes[bytes.size() / 2] ^= 1;
    EXPECT_EQ(read(bytes, 1 << 20).status.error().code, ErrorCode::data_loss);
    EXPECT_EQ(read("no stream at all", 1 << 20).status.error().code, ErrorCode::data_loss);
}

TEST(ZstdStream, AnErrorOfTheSinkIsHandedOn) {
    const std::string bytes = compressed("text");
    ZstdReader reader([](std::string_view) -> Status { return fail(ErrorCode::no_space, "full"); });
    EXPECT_EQ(reader.feed(bytes).error().code, ErrorCode::no_space);
}

}  // namespace
}  // namespace gb
