#include "store/store.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

class StoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        open();
        ASSERT_TRUE(store_->add_team(team_));
    }
    void TearDown() override {
        store_.reset();
        ASSERT_TRUE(remove_tree(dir_));
    }
    void open() {
        store_.reset();
        auto store = open_sqlite_store(dir_ / "db");
        ASSERT_TRUE(store) << store.error().message;
        store_ = *std::move(store);
    }
    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-store-" + random_id(10));
    std::unique_ptr<Store> store_;
    Team team_{"t1", "Team", "team", 5, 3600};
};

TEST_F(StoreTest, KeysAreFoundByTheirHashAlone) {
    ASSERT_TRUE(store_->add_api_key({"k1", "t1", "default", "hash", "e2b_…", 1}));
    auto found = store_->team_of_key("hash");
    ASSERT_TRUE(found);
    ASSERT_TRUE(*found);
    EXPECT_EQ((*found)->slug, "team");
    EXPECT_FALSE(*store_->team_of_key("other"));
}

TEST_F(StoreTest, SandboxesSurviveAReopening) {
    SandboxRecord record;
    record.id = "i1";
    record.team_id = "t1";
    record.state = SandboxState::running;
    record.ends_ms = 1234567890123;
    record.allow_internet_access = false;
    record.network_json = R"({"denyOut":["0.0.0.0/0"]})";
    record.metadata = {{"a", "b \"c\""}, {"\xc3\xa9", ""}};
    ASSERT_TRUE(store_->put_sandbox(record));
    open();
    auto rows = store_->sandboxes();
    ASSERT_TRUE(rows);
    ASSERT_EQ(rows->size(), 1U);
    EXPECT_EQ((*rows)[0].metadata, record.metadata);
    EXPECT_EQ((*rows)[0].ends_ms, record.ends_ms);
    EXPECT_EQ((*rows)[0].state, SandboxState::running);
    EXPECT_EQ((*rows)[0].allow_internet_access, false);
    EXPECT_EQ((*rows)[0].network_json, record.network_json);
    ASSERT_TRUE(store_->remove_sandbox("i1"));
    ASSERT_TRUE(store_->remove_sandbox("i1"));
    EXPECT_TRUE(store_->sandboxes()->empty());
}

TEST_F(StoreTest, ASecondTeamOfTheSameSlugIsRefused) {
    auto status = store_->add_team({"t2", "Other", "team", 1, 1});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::already_exists);
}

TEST_F(StoreTest, TheFileIsPrivate) {
    struct stat st{};
    ASSERT_EQ(::stat((dir_ / "db").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U);
}

TEST(Store, AMissingFolderIsAClearError) {
    auto store = open_sqlite_store("/no/such/folder/db");
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb
