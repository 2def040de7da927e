// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/guest_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::interpreter {
namespace {

using testing::HasSubstr;

class GuestStateTest : public testing::Test {
  protected:
    std::filesystem::path dir = testing::TempDir() + "guest_state_" + std::to_string(::getpid());
    void SetUp() override { ASSERT_TRUE(make_dirs(dir)); }
    void TearDown() override { (void)remove_tree(dir); }
    void write(const char* name, std::string_view text) { ASSERT_TRUE(write_file_atomic(dir / name, text)); }
};

TEST_F(GuestStateTest, MissingFilesMeanTheFirstGeneration) {
    EXPECT_EQ(read_guest_state(dir), GuestState{});
}

TEST_F(GuestStateTest, ReadsBothFiles) {
    write("generation", "7\n");
    write("envs.json", R"({"A":"multi\nline \"quoted\"","B":""})");
    GuestState state = read_guest_state(dir);
    EXPECT_EQ(state.generation, 7u);
    EXPECT_EQ(state.env, (EnvMap{{"A", "multi\nline \"quoted\""}, {"B", ""}}));
}

TEST_F(GuestStateTest, DamagedFilesCountAsMissing) {
    write("generation", "soon");
    write("envs.json", "[1");
    EXPECT_EQ(read_guest_state(dir), GuestState{});
}

TEST(GuestStateCall, OnlyWhenSomethingChanged) {
    EXPECT_FALSE(guest_state_call({}, {}));
    EXPECT_FALSE(guest_state_call(GuestState{3, {{"A", "1"}}}, GuestState{3, {{"A", "1"}}}));
}

TEST(GuestStateCall, SeedsOnlyForANewGeneration) {
    EXPECT_THAT(python_code(*guest_state_call({}, GuestState{1, {}})), HasSubstr(R"("reseed":true)"));
    EXPECT_THAT(python_code(*guest_state_call(GuestState{1, {}}, GuestState{2, {}})), HasSubstr(R"("reseed":true)"));
    EXPECT_THAT(python_code(*guest_state_call(GuestState{1, {}}, GuestState{1, {{"A", "1"}}})),
                HasSubstr(R"("reseed":false)"));
}

}  // namespace
}  // namespace gb::interpreter
