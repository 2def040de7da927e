// SPDX-License-Identifier: Apache-2.0
#include "engine/process_memory.h"

#include <map>

#include <sys/mman.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;

TEST(ParseMaps, KeepsFiles) {
    auto maps = parse_maps(
        "55d0c0000000-55d0c0001000 r-xp 00002000 fe:00 1234                       /usr/bin/some thing\n"
        "7f0000000000-7f0020000000 rw-p 00000000 00:2b 77 /vm/memory (deleted)\n"
        "7f0020000000-7f0020001000 rw-s 00000000 00:01 5 /dev/zero\n"
        "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
        "7ffd00021000-7ffd00022000 rw-p 00000000 00:00 0 \n");
    ASSERT_TRUE(maps.has_value()) << maps.error().message;
    ASSERT_EQ(maps->size(), 3U);
    EXPECT_EQ((*maps)[0].offset, 0x2000U);
    EXPECT_EQ((*maps)[1].start, 0x7f0000000000U);
    EXPECT_EQ((*maps)[1].end, 0x7f0020000000U);
    EXPECT_TRUE((*maps)[1].is_private);
    EXPECT_FALSE((*maps)[2].is_private);
    EXPECT_TRUE(parse_maps("")->empty());
}

TEST(ParseMaps, RefusesOtherLines) {
    for (const char* bad : {"nonsense\n", "10-20\n", "20-10 rw-p 0 0:0 1\n", "10-20 rw-p 0 0:0\n",
                            "10-20 rw-p 0 0:0 x\n", "zz-20 rw-p 0 0:0 1\n", "10-20 rw 0 0:0 1\n", "\n"})
        EXPECT_FALSE(parse_maps(bad).has_value()) << bad;
}

TEST(JoinMapping, TakesOneWholeRow) {
    const std::vector<FileMapping> split{{0x1000, 0x3000, 0, true}, {0x3000, 0x9000, 0x2000, true}};
    EXPECT_EQ(*join_mapping(split, 0x8000), 0x1000U);
    auto refused = [](std::vector<FileMapping> pieces, std::uint64_t bytes) {
        auto joined = join_mapping(pieces, bytes);
        return joined ? ErrorCode::unknown : joined.error().code;
    };
    EXPECT_EQ(refused({}, 0x8000), ErrorCode::not_found);
    EXPECT_EQ(refused(split, 0x9000), ErrorCode::failed_precondition) << "a part is missing";
    EXPECT_EQ(refused(split, 0x7000), ErrorCode::failed_precondition) << "more than there can be";
    EXPECT_EQ(refused({split[0], {0x4000, 0xa000, 0x2000, true}}, 0x8000), ErrorCode::failed_precondition)
        << "a gap";
    EXPECT_EQ(refused({split[0], split[0]}, 0x4000), ErrorCode::failed_precondition) << "twice";
    EXPECT_EQ(refused({{0x1000, 0x9000, 0, false}}, 0x8000), ErrorCode::failed_precondition) << "shared";
    EXPECT_EQ(refused({{0x1000, 0x9000, 0x1000, true}}, 0x8000), ErrorCode::failed_precondition)
        << "not from its start";
}

TEST(PagemapEntries, PrivateIsPresentOrSwappedAndNotOfTheFile) {
    constexpr std::uint64_t kFile = 1ULL << 61, kSwapped = 1ULL << 62, kPresent = 1ULL << 63;
    std::vector<PageRun> runs{{7, 3}};
    const std::vector<std::uint64_t> entries{kPresent,         kSwapped,         0,
                                             kPresent | kFile, kPresent | 12345, kFile};
    add_private_pages(entries, 10, runs);
    EXPECT_EQ(runs, (std::vector<PageRun>{{7, 5}, {14, 1}}));
}

class OwnMemory : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kPages = 2000;
    static constexpr std::uint64_t kBytes = kPages * kPageBytes;

    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root sees which file a mapping has";
        std::string content(kBytes, '\0');
        for (std::uint64_t page = 0; page < kPages; ++page) content[page * kPageBytes] = 'f';
        ASSERT_TRUE(write_file_atomic(file_, content).has_value());
        UniqueFd fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
        memory_ =
            static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd.get(), 0));
        ASSERT_NE(memory_, MAP_FAILED);
    }
    void TearDown() override {
        if (memory_ != nullptr) ::munmap(memory_, kBytes);
        ::unlink(file_.c_str());
    }
    char& at(std::uint64_t page) { return memory_[page * kPageBytes]; }

    fs::path file_ = fs::temp_directory_path() / ("glovebox-image-" + random_id(8));
    char* memory_ = nullptr;
};

TEST_F(OwnMemory, WrittenPagesAreFoundAndReadAndOthersNot) {
    int sum = 0;
    for (std::uint64_t page = 0; page < 1000; ++page) sum += at(page);  // mapped, not copied
    EXPECT_GT(sum, 0);
    for (std::uint64_t page : {0UL, 5UL, 6UL, 7UL, 1500UL, kPages - 1}) at(page) = 'w';
    ASSERT_EQ(::madvise(&at(100), 50 * kPageBytes, MADV_DONTDUMP), 0);  // cuts the mapping
    auto memory = ProcessMemory::find(::getpid(), file_, kBytes);
    ASSERT_TRUE(memory.has_value()) << memory.error().message;
    const std::vector<PageRun> expected{{0, 1}, {5, 3}, {1500, 1}, {kPages - 1, 1}};
    auto runs = memory->private_pages();
    ASSERT_TRUE(runs.has_value()) << runs.error().message;
    EXPECT_EQ(*runs, expected);
    auto slowly = memory->private_pages_from_entries();
    ASSERT_TRUE(slowly.has_value()) << slowly.error().message;
    EXPECT_EQ(*slowly, expected);

    std::map<std::uint64_t, char> seen;
    auto read = memory->read(*runs, [&](std::uint64_t first, std::span<const std::byte> contents) -> Status {
        for (std::size_t i = 0; i < contents.size() / kPageBytes; ++i)
            seen[first + i] = static_cast<char>(contents[i * kPageBytes]);
        return {};
    });
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(seen.size(), 6U);
    for (const auto& [page, value] : seen) EXPECT_EQ(value, 'w') << page;
}

TEST_F(OwnMemory, ManySmallRunsAndLongOnesAreReadWhole) {
    std::vector<PageRun> expected;
    for (std::uint64_t page = 0; page < 1200; page += 2) expected.push_back({page, 1});
    expected.push_back({1300, 700});
    for (const PageRun& run : expected)
        for (std::uint64_t i = 0; i < run.count; ++i) at(run.first + i) = static_cast<char>(run.first + i);
    auto memory = ProcessMemory::find(::getpid(), file_, kBytes);
    ASSERT_TRUE(memory.has_value());
    EXPECT_TRUE(*memory->private_pages() == expected);  // not EXPECT_EQ: it would print them
    std::uint64_t count = 0;
    std::uint64_t last = 0;
    auto read =
        memory->read(expected, [&](std::uint64_t first, std::span<const std::byte> contents) -> Status {
            EXPECT_GE(first, last);
            for (std::size_t i = 0; i < contents.size() / kPageBytes; ++i, ++count)
                EXPECT_EQ(static_cast<char>(contents[i * kPageBytes]), static_cast<char>(first + i));
            last = first + contents.size() / kPageBytes;
            return {};
        });
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(count, 600U + 700U);
    auto stopped = memory->read(expected, [](std::uint64_t, std::span<const std::byte>) -> Status {
        return fail(ErrorCode::no_space, "full");
    });
    EXPECT_EQ(stopped.error().code, ErrorCode::no_space);
}

TEST(LargeMemory, MoreRunsThanOneScanReportsAreFoundOnce) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root sees which file a mapping has";
    constexpr std::uint64_t kPages = 20'000;
    const fs::path file = fs::temp_directory_path() / ("glovebox-image-" + random_id(8));
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(fd.get(), kPages * kPageBytes), 0);
    auto* memory = static_cast<char*>(
        ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd.get(), 0));
    ASSERT_NE(memory, MAP_FAILED);
    std::vector<PageRun> expected;
    for (std::uint64_t page = 1; page < kPages; page += 2) {
        memory[page * kPageBytes] = 1;
        expected.push_back({page, 1});
    }
    auto found = ProcessMemory::find(::getpid(), file, kPages * kPageBytes);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_TRUE(*found->private_pages() == expected);
    EXPECT_TRUE(*found->private_pages_from_entries() == expected);
    ::munmap(memory, kPages * kPageBytes);
    ::unlink(file.c_str());
}

TEST_F(OwnMemory, BlocksAreWrittenToTheirPages) {
    at(40) = 'x';
    std::vector<std::byte> contents(3 * kPageBytes, std::byte{'d'});
    const std::vector<DeltaRun> runs{
        {2, 2, RunKind::data}, {40, 600, RunKind::zero}, {kPages - 1, 1, RunKind::data}};
    auto memory = ProcessMemory::find(::getpid(), file_, kBytes);
    ASSERT_TRUE(memory.has_value());
    ASSERT_TRUE(memory->write({runs, contents}).has_value());
    EXPECT_EQ(at(1), 'f');
    EXPECT_EQ(at(2), 'd');
    EXPECT_EQ(at(3), 'd');
    EXPECT_EQ(at(4), 'f');
    EXPECT_EQ(at(40), 0);
    EXPECT_EQ(at(639), 0);
    EXPECT_EQ(at(640), 'f');
    EXPECT_EQ(at(kPages - 1), 'd');
    EXPECT_EQ((*read_file(file_))[2 * kPageBytes], 'f') << "the image is never written";
    const std::vector<DeltaRun> beyond{{kPages, 1, RunKind::zero}};
    EXPECT_EQ(memory->write({beyond, {}}).error().code, ErrorCode::out_of_range);
}

TEST_F(OwnMemory, OnlyAWholePrivateMappingIsTaken) {
    EXPECT_FALSE(ProcessMemory::find(::getpid(), file_, kBytes * 2).has_value());
    EXPECT_EQ(ProcessMemory::find(::getpid(), "/proc/self/exe", kBytes).error().code,
              ErrorCode::failed_precondition);
    EXPECT_EQ(ProcessMemory::find(::getpid(), "/etc/passwd", kBytes).error().code, ErrorCode::not_found);
    ::munmap(&at(100), kPageBytes);
    EXPECT_EQ(ProcessMemory::find(::getpid(), file_, kBytes).error().code, ErrorCode::failed_precondition);
    ::munmap(memory_, kBytes);
    memory_ = nullptr;
    EXPECT_EQ(ProcessMemory::find(::getpid(), file_, kBytes).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb::engine
