// SPDX-License-Identifier: Apache-2.0
#include "node/folder_size.h"

#include <fstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/assert_ok.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

class FolderSize : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_OK(make_dirs(dir_ / "base")); }
    void TearDown() override { ASSERT_OK(remove_tree(dir_)); }
    static std::uint64_t blocks(const fs::path& path) {
        struct stat info{};
        return ::lstat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512 : 0;
    }
    void write(const fs::path& path, std::size_t size) {
        ASSERT_OK(write_file_atomic(path, std::string(size, 'x')));
    }
    fs::path dir_ = fs::temp_directory_path() / ("gb-size-" + random_id(10));
};

TEST_F(FolderSize, CountsBlocksOfFilesAndFolders) {
    const std::uint64_t empty = *own_bytes(dir_);
    EXPECT_EQ(empty, blocks(dir_) + blocks(dir_ / "base"));
    write(dir_ / "disk.img", 1 << 20);
    write(dir_ / "base" / "more", 5000);
    EXPECT_GE(blocks(dir_ / "disk.img"), std::uint64_t{1} << 20);
    EXPECT_EQ(*own_bytes(dir_), empty + blocks(dir_ / "disk.img") + blocks(dir_ / "base/more"));
}

TEST_F(FolderSize, HolesAndWhatOthersHoldTooAreNotCounted) {
    const std::uint64_t empty = *own_bytes(dir_);
    write(dir_ / "image", 1 << 20);
    fs::create_hard_link(dir_ / "image", dir_ / "base" / "image");
    EXPECT_EQ(*own_bytes(dir_), empty);
    fs::remove(dir_ / "image");  // the sandbox is the only one that holds on to it
    EXPECT_EQ(*own_bytes(dir_), empty + blocks(dir_ / "base/image"));
    fs::remove(dir_ / "base" / "image");
    std::ofstream(dir_ / "sparse").close();
    fs::resize_file(dir_ / "sparse", 1 << 30);
    EXPECT_LT(*own_bytes(dir_), empty + (1 << 20));
}

TEST_F(FolderSize, LinksAreNotFollowedAndAMissingFolderIsSaid) {
    write(dir_ / "big", 1 << 20);
    const fs::path other = dir_ / "base";
    fs::create_directory_symlink(dir_, other / "up");
    EXPECT_LT(*own_bytes(other), std::uint64_t{1} << 20);
    EXPECT_EQ(own_bytes(dir_ / "nothing").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb
