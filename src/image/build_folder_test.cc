// SPDX-License-Identifier: Apache-2.0
#include "image/build_folder.h"

#include <optional>

#include "image/test_folder.h"

namespace gb::image {
namespace {

TEST(BuildFolder, IsRemovedWithWhatIsInIt) {
    TestFolder cache;
    std::filesystem::path path;
    {
        auto folder = BuildFolder::make(cache.path(), "base");
        ASSERT_TRUE(folder) << folder.error().message;
        path = folder->path();
        ASSERT_TRUE(make_dirs(path / "root/etc"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(BuildFolder, LeftoversOfTheSameBuildGoAndOthersStay) {
    TestFolder cache;
    ASSERT_TRUE(make_dirs(cache.path() / ".build-base-abcdefgh/root"));
    ASSERT_TRUE(make_dirs(cache.path() / ".build-base-two-abcdefgh"));
    cache.write("base-0123.ext4", "");
    auto folder = BuildFolder::make(cache.path(), "base");
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_FALSE(std::filesystem::exists(cache.path() / ".build-base-abcdefgh"));
    EXPECT_TRUE(std::filesystem::exists(cache.path() / ".build-base-two-abcdefgh"));
    EXPECT_TRUE(std::filesystem::exists(cache.path() / "base-0123.ext4"));
}

TEST(BuildFolder, InMemoryItIsTheSame) {
    TestFolder cache;
    std::filesystem::path path;
    {
        auto folder = BuildFolder::make(cache.path(), "base", 1);  // on disk where mounting is not allowed
        ASSERT_TRUE(folder) << folder.error().message;
        path = folder->path();
        EXPECT_TRUE(write_file_atomic(path / "file", "content"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(BuildFolder, RemovingWhatIsNotThereIsSuccess) {
    TestFolder cache;
    EXPECT_TRUE(remove_build_tree(cache.path() / "none"));
}

}  // namespace
}  // namespace gb::image
