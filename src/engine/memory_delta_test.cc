// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_delta.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;

const MemoryBase kBase{"image-a", 4096 * kPageBytes};

// What a delta holds: page to its first byte.
Result<std::map<std::uint64_t, unsigned char>> pages_of(DeltaReader reader) {
    std::map<std::uint64_t, unsigned char> out;
    for (;;) {
        GB_TRY_ASSIGN(auto block, reader.next());
        if (!block) return out;
        const std::byte* content = block->contents.data();
        for (const DeltaRun& run : block->runs)
            for (std::uint32_t i = 0; i < run.pages; ++i) {
                const bool zero = run.kind == RunKind::zero;
                out[run.first_page + i] = zero ? 0 : static_cast<unsigned char>(*content);
                if (!zero) content += kPageBytes;
            }
    }
}

Result<std::map<std::uint64_t, unsigned char>> pages_of(const fs::path& path) {
    GB_TRY_ASSIGN(DeltaReader reader, DeltaReader::open(path, kBase));
    return pages_of(std::move(reader));
}

// Without a file: thousands of damaged ones are quick.
Result<std::map<std::uint64_t, unsigned char>> pages_in(std::string bytes, const MemoryBase& base) {
    auto source = [bytes = std::move(bytes), at = std::size_t{0}](std::span<std::byte> buffer) mutable {
        const std::size_t n = std::min(buffer.size(), bytes.size() - at);
        std::memcpy(buffer.data(), bytes.data() + at, n);
        at += n;
        return Result<std::size_t>(n);
    };
    GB_TRY_ASSIGN(DeltaReader reader, DeltaReader::from(std::move(source), base));
    return pages_of(std::move(reader));
}

std::vector<std::byte> pages(std::initializer_list<int> first_bytes) {
    std::vector<std::byte> out(first_bytes.size() * kPageBytes);
    std::size_t i = 0;
    for (int value : first_bytes) out[i++ * kPageBytes] = static_cast<std::byte>(value);
    return out;
}

class MemoryDelta : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(make_dirs(folder_).has_value()); }
    void TearDown() override { (void)remove_tree(folder_); }
    fs::path file(const std::string& name) const { return folder_ / name; }

    // Pages 3 to 5, of which 4 is zero, and pages 100 to 699.
    std::string sample() {
        auto writer = DeltaWriter::create(file("sample"), kBase);
        EXPECT_TRUE(writer.has_value());
        EXPECT_TRUE(writer->add(3, pages({7, 0, 9})).has_value());
        std::vector<std::byte> many(600 * kPageBytes, std::byte{0x55});
        EXPECT_TRUE(writer->add(100, many).has_value());
        EXPECT_TRUE(writer->finish().has_value());
        EXPECT_TRUE(writer->publish().has_value());
        return *read_file(file("sample"));
    }
    static Error refused(std::string bytes, const MemoryBase& base = kBase) {
        auto read = pages_in(std::move(bytes), base);
        EXPECT_FALSE(read.has_value());
        return read ? Error(ErrorCode::unknown, "it was taken") : read.error();
    }

    fs::path folder_ = fs::temp_directory_path() / ("glovebox-delta-" + random_id(8));
};

TEST_F(MemoryDelta, HoldsWhatWasAddedAndZeroPagesTakeNoRoom) {
    const std::string bytes = sample();
    auto read = pages_of(file("sample"));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->size(), 603U);
    EXPECT_EQ((*read)[3], 7);
    EXPECT_EQ((*read)[4], 0);
    EXPECT_EQ((*read)[5], 9);
    EXPECT_EQ((*read)[699], 0x55);
    EXPECT_FALSE(read->contains(6));
    EXPECT_LT(bytes.size(), 603 * kPageBytes) << "602 pages have content";
    EXPECT_GT(bytes.size(), 602 * kPageBytes);

    auto zeroes = DeltaWriter::create(file("zeroes"), kBase);
    ASSERT_TRUE(zeroes->add(0, std::vector<std::byte>(4096 * kPageBytes)).has_value());
    auto stats = zeroes->finish();
    ASSERT_TRUE(stats.has_value());
    EXPECT_EQ(stats->zero_pages, 4096U);
    EXPECT_EQ(stats->data_pages, 0U);
    EXPECT_LT(stats->bytes, 1000U);
    ASSERT_TRUE(zeroes->publish().has_value());
    EXPECT_EQ(pages_of(file("zeroes"))->size(), 4096U);
}

TEST_F(MemoryDelta, SaysTheSameAboutItselfWhenReadAsWhenWritten) {
    auto writer = DeltaWriter::create(file("d"), kBase);
    // Every other page zero: more runs than one block takes.
    std::vector<std::byte> striped(4096 * kPageBytes);
    for (std::size_t page = 0; page < 4096; page += 2) striped[page * kPageBytes + 17] = std::byte{1};
    ASSERT_TRUE(writer->add(0, striped).has_value());
    auto written = writer->finish();
    ASSERT_TRUE(written.has_value());
    ASSERT_TRUE(writer->publish().has_value());
    EXPECT_EQ(written->bytes, fs::file_size(file("d")));
    auto reader = DeltaReader::open(file("d"), kBase);
    ASSERT_TRUE(reader.has_value());
    for (;;) {
        auto block = reader->next();
        ASSERT_TRUE(block.has_value()) << block.error().message;
        if (!*block) break;
    }
    EXPECT_FALSE(reader->next()->has_value()) << "the end stays the end";
    EXPECT_EQ(reader->stats().bytes, written->bytes);
    EXPECT_EQ(reader->stats().data_pages, 2048U);
    EXPECT_EQ(reader->stats().zero_pages, 2048U);
    EXPECT_EQ(reader->stats().checksum, written->checksum);
}

TEST_F(MemoryDelta, EmptyOneIsOne) {
    auto writer = DeltaWriter::create(file("empty"), kBase);
    ASSERT_TRUE(writer->finish().has_value());
    ASSERT_TRUE(writer->publish().has_value());
    EXPECT_TRUE(pages_of(file("empty"))->empty());
}

TEST_F(MemoryDelta, WriterRefusesWhatHasNoPlace) {
    auto writer = DeltaWriter::create(file("w"), kBase);
    ASSERT_TRUE(writer->add(10, pages({1, 2})).has_value());
    for (std::uint64_t page : {0UL, 11UL, 4096UL, ~0UL})
        EXPECT_FALSE(writer->add(page, pages({1})).has_value()) << page;
    EXPECT_FALSE(writer->add(4095, pages({1, 2})).has_value());
    EXPECT_FALSE(writer->add(20, std::vector<std::byte>(100)).has_value());
    EXPECT_FALSE(writer->publish().has_value()) << "it has no end yet";
    ASSERT_TRUE(writer->finish().has_value());
    EXPECT_FALSE(writer->add(20, pages({1})).has_value());
    EXPECT_FALSE(DeltaWriter::create(file("x"), {"", 4096}).has_value());
    EXPECT_FALSE(DeltaWriter::create(file("x"), {"id", 4097}).has_value());
}

TEST_F(MemoryDelta, WithoutPublishNothingIsLeft) {
    {
        auto writer = DeltaWriter::create(file("gone"), kBase);
        ASSERT_TRUE(writer->add(0, pages({1})).has_value());
        ASSERT_TRUE(writer->finish().has_value());
        EXPECT_FALSE(fs::exists(file("gone")));
    }
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(MemoryDelta, AnotherImageIsRefused) {
    const std::string bytes = sample();
    EXPECT_EQ(refused(bytes, {"image-b", kBase.bytes}).code, ErrorCode::failed_precondition);
    EXPECT_EQ(refused(bytes, {"image-a", kBase.bytes * 2}).code, ErrorCode::failed_precondition);
}

TEST_F(MemoryDelta, AnotherVersionIsRefused) {
    std::string bytes = sample();
    bytes[8] = 2;
    const Error error = refused(bytes);
    EXPECT_EQ(error.code, ErrorCode::data_loss);
    EXPECT_NE(error.message.find("version 2"), std::string::npos) << error.message;
}

TEST_F(MemoryDelta, EveryDamagedByteIsFound) {
    const std::string good = sample();
    // All of the metadata, and samples of the contents.
    for (std::size_t at = 0; at < good.size(); at += at < 400 || good.size() - at < 100 ? 1 : 9973) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        EXPECT_EQ(refused(bad).code, ErrorCode::data_loss) << at;
    }
}

TEST_F(MemoryDelta, EveryTruncationIsFound) {
    const std::string good = sample();
    for (std::size_t length = 0; length < good.size();
         length += length < 400 || good.size() - length < 100 ? 1 : 9973)
        EXPECT_EQ(refused(good.substr(0, length)).code, ErrorCode::data_loss) << length;
    EXPECT_EQ(refused(good + "x").code, ErrorCode::data_loss);
}

// Blocks with right checksums and wrong contents, as only a mistake of ours could write them.
class CraftedDelta : public MemoryDelta {
  protected:
    struct Run {
        std::uint64_t first;
        std::uint32_t count, kind;
    };
    std::string craft(const std::vector<std::vector<Run>>& blocks, std::uint32_t content_pages = 0) {
        auto writer = DeltaWriter::create(file("crafted"), kBase);
        EXPECT_TRUE(writer->finish().has_value() && writer->publish().has_value());
        std::string out = read_file(file("crafted"))->substr(0, 64);
        std::uint32_t chain = 0;
        std::uint64_t zero = 0;
        auto bytes = [](const auto* data, std::size_t n) { return std::as_bytes(std::span(data, n)); };
        for (const std::vector<Run>& runs : blocks) {
            std::string block = "BLCK" + std::string(28, '\0');
            const auto count = static_cast<std::uint32_t>(runs.size());
            std::memcpy(block.data() + 4, &count, 4);
            std::memcpy(block.data() + 8, &content_pages, 4);
            std::string rest;
            for (const Run& run : runs) {
                rest.append(reinterpret_cast<const char*>(&run), sizeof run);
                if (run.kind == 1) zero += run.count;
            }
            rest.append(content_pages * kPageBytes, 'c');
            const std::uint32_t crc =
                crc32c(bytes(rest.data(), rest.size()), crc32c(bytes(block.data(), 28)));
            std::memcpy(block.data() + 28, &crc, 4);
            chain = crc32c(bytes(&crc, 1), chain);
            out += block + rest;
        }
        std::string end = "DEND" + std::string(28, '\0');
        const auto count = static_cast<std::uint32_t>(blocks.size());
        const std::uint64_t data = std::uint64_t{content_pages} * count;
        std::memcpy(end.data() + 4, &count, 4);
        std::memcpy(end.data() + 8, &data, 8);
        std::memcpy(end.data() + 16, &zero, 8);
        const std::uint32_t crc = crc32c(bytes(end.data(), 28), chain);
        std::memcpy(end.data() + 28, &crc, 4);
        return out + end;
    }
    void expect_refused(const std::string& bytes, const char* why) {
        const Error error = refused(bytes);
        EXPECT_EQ(error.code, ErrorCode::data_loss);
        EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
    }
};

TEST_F(CraftedDelta, RunsThatAreNoneAreRefused) {
    EXPECT_EQ(pages_in(craft({{{5, 2, 1}, {9, 1, 1}}, {{10, 1, 1}}}), kBase)->size(), 4U)
        << "the crafting itself is right";

    expect_refused(craft({{{5, 2, 1}, {6, 1, 1}}}), "overlap");
    expect_refused(craft({{{9, 1, 1}}, {{5, 1, 1}}}), "overlap");
    expect_refused(craft({{{4096, 1, 1}}}), "beyond");
    expect_refused(craft({{{4095, 2, 1}}}), "beyond");
    expect_refused(craft({{{~0ULL, 2, 1}}}), "beyond");
    expect_refused(craft({{{5, 0, 1}}}), "empty");
    expect_refused(craft({{{5, 1, 2}}}), "kind");
    expect_refused(craft({{{5, 1, 0}}}), "fit");
    expect_refused(craft({{{5, 1, 1}}}, 1), "fit");
    expect_refused(craft({{}}), "sizes");
    expect_refused(craft({std::vector<Run>(kDeltaBlockRuns + 1, Run{5, 1, 1})}), "sizes");
}

TEST_F(CraftedDelta, MissingOrExchangedBlocksAreFound) {
    const std::string whole = craft({{{5, 1, 1}}, {{7, 1, 1}}, {{9, 1, 1}}});
    constexpr std::size_t kBlock = 32 + 16;
    std::string without = whole;
    without.erase(64 + kBlock, kBlock);
    EXPECT_EQ(refused(without).code, ErrorCode::data_loss);
    std::string exchanged = whole.substr(0, 64) + whole.substr(64 + kBlock, kBlock) +
                            whole.substr(64, kBlock) + whole.substr(64 + 2 * kBlock);
    EXPECT_EQ(refused(exchanged).code, ErrorCode::data_loss);
}

}  // namespace
}  // namespace gb::engine
