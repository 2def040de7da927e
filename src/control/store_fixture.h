// SPDX-License-Identifier: Apache-2.0
// For tests: a store in a folder of its own, both gone with the test.
#pragma once

#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "store/store.h"

namespace gb {

class StoreFixture : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        auto store = open_sqlite_store(dir_ / "db");
        ASSERT_TRUE(store);
        store_ = *std::move(store);
    }
    void TearDown() override {
        store_.reset();
        ASSERT_TRUE(remove_tree(dir_));
    }

    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-store-" + random_id(10));
    std::unique_ptr<Store> store_;
};

}  // namespace gb
