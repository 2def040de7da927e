// SPDX-License-Identifier: Apache-2.0
#include "node/paused_sandbox.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

PausedSandbox sample(PauseMode mode = PauseMode::with_memory) {
    PausedSandbox p;
    p.id = "isandbox1";
    p.mode = mode;
    p.paused_ms = 1'795'986'675'636;
    p.from.info = {"tid", "base", "b-1", 1, 512, 4096, 7};
    p.from.vmm_id = "vmm";
    p.from.command_line = "console=ttyS0";
    p.from.env = {{"LANG", "C.UTF-8"}};
    if (mode == PauseMode::with_memory) {
        p.saved.state_bytes = 3;
        p.saved.state_sha256 = "abc";
        p.saved.memory_bytes = 5;
        p.saved.memory_checksum = 0xfedcba98;
    }
    return p;
}

TEST(PausedManifest, SaysAgainWhatWasWritten) {
    for (PauseMode mode : {PauseMode::with_memory, PauseMode::filesystem_only}) {
        PausedSandbox p = sample(mode);
        p.disk = {196'672, 1'795'986'675'123'456'789};
        auto read = parse_paused(write_paused(p));
        ASSERT_TRUE(read.has_value()) << read.error().message;
        EXPECT_EQ(read->id, p.id);
        EXPECT_EQ(read->mode, mode);
        EXPECT_EQ(read->paused_ms, p.paused_ms);
        EXPECT_EQ(read->disk, p.disk);
        EXPECT_EQ(read->saved.state_bytes, p.saved.state_bytes);
        EXPECT_EQ(read->saved.state_sha256, p.saved.state_sha256);
        EXPECT_EQ(read->saved.memory_bytes, p.saved.memory_bytes);
        EXPECT_EQ(read->saved.memory_checksum, p.saved.memory_checksum);
        EXPECT_EQ(read->from.info.build_id, "b-1");
        EXPECT_EQ(read->from.env, p.from.env);
    }
}

TEST(PausedManifest, RefusesWhatItDoesNotKnow) {
    const std::string good = write_paused(sample());
    auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    EXPECT_EQ(parse_paused(changed("{\"format\":1", "{\"format\":2")).error().code,
              ErrorCode::failed_precondition);
    for (const std::string& bad :
         {std::string(), std::string("[]"), good.substr(0, good.size() / 2),
          changed("\"format\":1", "\"format\":\"1\""), changed("with_memory", "somehow"),
          changed("state_bytes", "other"), changed("\"state_bytes\":3", "\"state_bytes\":-3"),
          changed("\"template\"", "\"tamplate\""), changed("memory_checksum", "checksum"),
          changed("build_id", "bild_id")})
        EXPECT_EQ(parse_paused(bad).error().code, ErrorCode::data_loss) << bad;
}

TEST(SandboxNames, AreNoPaths) {
    EXPECT_TRUE(is_sandbox_name("i0123456789abcdefghi"));
    EXPECT_TRUE(is_sandbox_name("A_b-9"));
    for (const char* bad : {"", ".", "..", "a/b", "/etc", "a b", "a.b", "a\n"})
        EXPECT_FALSE(is_sandbox_name(bad)) << bad;
    EXPECT_FALSE(is_sandbox_name(std::string(65, 'a')));
}

class PausedFiles : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(folder_.path()).has_value());
        ASSERT_TRUE(write_file_atomic(folder_.disk(), "disk").has_value());
        ASSERT_TRUE(write_file_atomic(folder_.state(), "sta").has_value());
        ASSERT_TRUE(write_file_atomic(folder_.memory(), "delta").has_value());
        PausedSandbox p = sample();
        p.disk = *mark_of(folder_.disk());
        ASSERT_TRUE(put_paused(folder_, p).has_value());
    }
    void TearDown() override { (void)remove_tree(root_); }
    ErrorCode code() const {
        auto read = read_paused(folder_);
        return read ? ErrorCode::unknown : read.error().code;
    }

    fs::path root_ = fs::temp_directory_path() / ("glovebox-paused-" + random_id(8));
    SandboxFolder folder_{root_ / "isandbox1"};
};

TEST_F(PausedFiles, AreReadWhenTheyAreWhole) {
    auto read = read_paused(folder_);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->from.info.name, "base");
}

TEST_F(PausedFiles, MissingOrCutFilesAreDamage) {
    ASSERT_TRUE(write_file_atomic(folder_.memory(), "delt").has_value());
    EXPECT_EQ(code(), ErrorCode::data_loss);
    fs::remove(folder_.memory());
    EXPECT_EQ(code(), ErrorCode::data_loss);
    ASSERT_TRUE(write_file_atomic(folder_.memory(), "delta").has_value());
    fs::remove(folder_.state());
    EXPECT_EQ(code(), ErrorCode::data_loss);
    ASSERT_TRUE(write_file_atomic(folder_.state(), "sta").has_value());
    EXPECT_EQ(code(), ErrorCode::unknown);
    fs::remove(folder_.disk());
    EXPECT_EQ(code(), ErrorCode::data_loss);
}

TEST_F(PausedFiles, ADiskThatWasWrittenSinceIsSeen) {
    ASSERT_TRUE(write_file_atomic(folder_.disk(), "dirt").has_value());
    // The kernel's times go in steps of some milliseconds, and this file is as old as its mark.
    fs::last_write_time(folder_.disk(), fs::last_write_time(folder_.disk()) + std::chrono::milliseconds(10));
    EXPECT_EQ(code(), ErrorCode::aborted);
}

TEST_F(PausedFiles, WithoutMemoryTheDiskMayBeWrittenAndNothingElseIsNeeded) {
    PausedSandbox p = sample(PauseMode::filesystem_only);
    p.disk = *mark_of(folder_.disk());
    ASSERT_TRUE(put_paused(folder_, p).has_value());
    fs::remove(folder_.state());
    fs::remove(folder_.memory());
    ASSERT_TRUE(write_file_atomic(folder_.disk(), "dirt").has_value());
    EXPECT_TRUE(read_paused(folder_).has_value());
    fs::remove(folder_.disk());
    EXPECT_EQ(code(), ErrorCode::data_loss);
}

TEST_F(PausedFiles, AManifestOfAnotherSandboxIsRefused) {
    PausedSandbox p = sample();
    p.disk = *mark_of(folder_.disk());
    p.id = "other";
    ASSERT_TRUE(put_paused(folder_, p).has_value());
    EXPECT_EQ(code(), ErrorCode::data_loss);
}

TEST_F(PausedFiles, RemovedTwiceIsRemovedAndTheDiskStays) {
    ASSERT_TRUE(remove_paused(folder_).has_value());
    ASSERT_TRUE(remove_paused(folder_).has_value());
    EXPECT_EQ(code(), ErrorCode::not_found);
    EXPECT_TRUE(fs::exists(folder_.disk()));
    EXPECT_FALSE(fs::exists(folder_.memory()));
    EXPECT_FALSE(fs::exists(folder_.state()));
}

}  // namespace
}  // namespace gb
