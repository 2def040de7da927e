// SPDX-License-Identifier: Apache-2.0
// A temporary folder for one test, removed with it.
#pragma once

#include <filesystem>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb::image {

class TestFolder {
  public:
    TestFolder() : path_(std::filesystem::temp_directory_path() / ("image-test-" + random_id(10))) {
        EXPECT_TRUE(make_dirs(path_));
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    ~TestFolder() { EXPECT_TRUE(remove_tree(path_)); }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    std::filesystem::path write(std::string_view name, std::string_view text, unsigned mode = 0644) const {
        std::filesystem::path file = path_ / name;
        EXPECT_TRUE(make_dirs(file.parent_path()));
        EXPECT_TRUE(write_file_atomic(file, text, mode));
        return file;
    }

  private:
    std::filesystem::path path_;
};

}  // namespace gb::image
