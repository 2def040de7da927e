// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <atomic>
#include <thread>

#include <sys/stat.h>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/ids.h"

namespace gb {
namespace {

class FileTest : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(make_dirs(dir_)); }
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-file-" + random_id(10));
};

TEST_F(FileTest, AtomicWriteReplacesAndLeavesNothingBehind) {
    ASSERT_TRUE(write_file_atomic(dir_ / "a", "one", 0600));
    ASSERT_TRUE(write_file_atomic(dir_ / "a", "two", 0600));
    EXPECT_EQ(*read_file(dir_ / "a"), "two");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(FileTest, AtomicWriteIntoMissingFolderFails) {
    auto status = write_file_atomic(dir_ / "no" / "a", "x");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::not_found);
}

TEST_F(FileTest, SparseCopyKeepsBytesAndHoles) {
    auto fd = open_file(dir_ / "a", O_RDWR | O_CREAT, 0600);
    ASSERT_TRUE(fd);
    ASSERT_EQ(::ftruncate(fd->get(), 64 << 20), 0);
    ASSERT_EQ(::pwrite(fd->get(), "middle", 6, 32 << 20), 6);
    ASSERT_TRUE(copy_file_sparse(dir_ / "a", dir_ / "b", 0600));
    auto copy = read_file(dir_ / "b");
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->size(), 64U << 20);
    EXPECT_EQ(copy->substr(32 << 20, 6), "middle");
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / "b").c_str(), &st), 0);
    EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

TEST_F(FileTest, AppendedFilesKeepTheirHolesAndPlaces) {
    auto out = open_file(dir_ / "all", O_RDWR | O_CREAT, 0600);
    ASSERT_TRUE(out);
    for (const char* name : {"one", "two"}) {
        auto part = open_file(dir_ / name, O_RDWR | O_CREAT, 0600);
        ASSERT_TRUE(part);
        ASSERT_EQ(::pwrite(part->get(), name, 3, 8 << 20), 3);
        ASSERT_EQ(::ftruncate(part->get(), 16 << 20), 0);
        ASSERT_TRUE(append_sparse(part->get(), out->get()));
    }
    auto all = read_file(dir_ / "all");
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 32U << 20);
    EXPECT_EQ(all->substr(8 << 20, 3), "one");
    EXPECT_EQ(all->substr(24 << 20, 3), "two");
    struct stat st{};
    ASSERT_EQ(::fstat(out->get(), &st), 0);
    EXPECT_LT(st.st_blocks * 512, 1 << 20);
}

// Zeros for what has gone would pass for the file; whoever moves it removes the original next.
TEST_F(FileTest, ACopyOfAFileThatIsCutFails) {
    constexpr off_t kStep = 8192, kSize = 4000 * kStep;
    for (int i = 0; i < 5; ++i) {
        auto in = open_file(dir_ / "a", O_RDWR | O_CREAT | O_TRUNC, 0600);
        auto out = open_file(dir_ / "b", O_RDWR | O_CREAT | O_TRUNC, 0600);
        ASSERT_TRUE(in && out);
        // Every other block is a hole: the copy is at its search for data most of the time.
        for (off_t at = 0; at < kSize; at += kStep) ASSERT_EQ(::pwrite(in->get(), "data", 4, at), 4);
        const auto blocks = [](int fd) {
            struct stat st{};
            return ::fstat(fd, &st) == 0 ? st.st_blocks : -1;
        };
        std::atomic<bool> copied = false;
        std::jthread cutter([&] {
            while (!copied && blocks(out->get()) == 0) {
            }
            if (!copied) EXPECT_EQ(::ftruncate(in->get(), kStep), 0);
        });
        const Status done = append_sparse(in->get(), out->get());
        copied = true;
        cutter.join();
        if (done)
            EXPECT_GE(blocks(out->get()), kSize / kStep * 8);  // it was too fast for the cutter
        else
            EXPECT_EQ(done.error().code, ErrorCode::aborted) << done.error().message;
    }
}

TEST_F(FileTest, AGrowingFileIsCopiedAsFarAsItWas) {
    ASSERT_TRUE(write_file_atomic(dir_ / "a", std::string(300'000, 'x')));
    std::atomic<bool> stop = false;
    std::jthread writer([&] {
        auto fd = open_file(dir_ / "a", O_WRONLY | O_APPEND);
        const std::string more(10'000, 'x');
        for (int i = 0; i < 300 && !stop; ++i) (void)write_all(fd->get(), more);
    });
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(copy_file_sparse(dir_ / "a", dir_ / "b"));
        const std::string copy = read_file(dir_ / "b").value();
        EXPECT_GE(copy.size(), 300'000U);
        EXPECT_EQ(copy.find_first_not_of('x'), std::string::npos);
    }
    stop = true;
}

TEST_F(FileTest, CopyWorksBetweenFileSystems) {
    std::filesystem::path other = "/dev/shm/gb-file-" + random_id(10);
    ASSERT_TRUE(write_file_atomic(dir_ / "a", std::string(200'000, 'x')));
    auto copied = copy_file_sparse(dir_ / "a", other);
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(*read_file(other), std::string(200'000, 'x'));
    std::filesystem::remove(other);
}

TEST_F(FileTest, MakeDirsRefusesAFileInTheWay) {
    ASSERT_TRUE(write_file_atomic(dir_ / "f", ""));
    EXPECT_FALSE(make_dirs(dir_ / "f"));
    EXPECT_TRUE(make_dirs(dir_ / "x" / "y" / "z"));
    EXPECT_TRUE(make_dirs(dir_ / "x" / "y" / "z"));
    EXPECT_TRUE(remove_tree(dir_ / "missing"));
}

}  // namespace
}  // namespace gb
