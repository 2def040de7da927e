// SPDX-License-Identifier: Apache-2.0
#include "node/template_store.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

class TemplateStoreTest : public ::testing::Test {
  protected:
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }
    void add(const std::string& name, const std::string& build, std::int64_t created, bool whole = true,
             std::int64_t imported = 0) {
        Manifest m;
        m.imported_ms = imported;
        m.info = {"id-" + name, name, build, 1, 512, 4096, created};
        ASSERT_TRUE(make_dirs(dir_ / build));
        for (const char* file : {"disk.img", "memory.img", "overlay.qcow2"})
            ASSERT_TRUE(write_file_atomic(dir_ / build / file, "x"));
        if (whole) ASSERT_TRUE(write_file_atomic(dir_ / build / "state.bin", "x"));
        ASSERT_TRUE(write_file_atomic(dir_ / build / "manifest.json", write_manifest(m)));
        // The folder's own time decides whether it is read again; coarse clocks may not have moved.
        std::filesystem::last_write_time(dir_, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(created));
    }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-templates-" + random_id(10));
};

TEST_F(TemplateStoreTest, TheNewestBuildOfANameCounts) {
    TemplateStore store(dir_);
    EXPECT_TRUE(store.list()->empty());
    add("base", "b1", 1);
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b1");
    add("base", "b2", 2);
    add("other", "o1", 3);
    EXPECT_EQ(store.list()->size(), 2U);
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b2");
    EXPECT_EQ(store.find("id-other")->manifest.info.name, "other");
    EXPECT_EQ(store.find("none").error().code, ErrorCode::not_found);
}

TEST_F(TemplateStoreTest, AnImportedBuildCountsFromWhenItCame) {
    add("base", "b1", 5);
    add("base", "b2", 2, true, 6);
    TemplateStore store(dir_);
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b2");
    add("base", "b3", 7);
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b3");
}

TEST_F(TemplateStoreTest, OtherBuildsOfANameAreRemovedAndNothingElse) {
    add("base", "b1", 1);
    add("base", "b2", 2);
    add("other", "o1", 3);
    TemplateInfo keep;
    keep.name = "base";
    keep.build_id = "b2";
    remove_other_builds(dir_, keep);
    TemplateStore store(dir_);
    EXPECT_EQ(store.list()->size(), 2U);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "b1"));
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b2");
}

TEST_F(TemplateStoreTest, ABuildThatIsNotWholeIsLeftOut) {
    add("base", "b1", 1);
    add("base", "b2", 2, false);
    add("base", ".build-b3", 3);
    TemplateStore store(dir_);
    EXPECT_EQ(store.find("base")->manifest.info.build_id, "b1");
}

}  // namespace
}  // namespace gb
