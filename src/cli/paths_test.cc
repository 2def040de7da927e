// SPDX-License-Identifier: Apache-2.0
#include "cli/paths.h"

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace gb::cli {
namespace {

namespace fs = std::filesystem;

class OwnFoldersTest : public testing::Test {
  protected:
    fs::path root_ = fs::temp_directory_path() / ("glovebox-paths-" + std::to_string(::getpid()));
    void SetUp() override { fs::create_directories(root_ / "bin"); }
    void TearDown() override { fs::remove_all(root_); }
};

TEST_F(OwnFoldersTest, AreThoseOfThePrefixThatTheProgramIsIn) {
    fs::create_directories(root_ / "share/glovebox/images");
    fs::create_directories(root_ / "lib/glovebox/guest");
    const OwnFolders own = own_folders(root_ / "bin/glovebox");
    EXPECT_EQ(own.images, root_ / "share/glovebox/images");
    EXPECT_EQ(own.guest, root_ / "lib/glovebox/guest");
}

TEST_F(OwnFoldersTest, AreBesideTheProgramWhereItWasBuilt) {
    fs::create_directories(root_ / "share/glovebox/images");
    fs::create_directories(root_ / "bin/images");
    fs::create_directories(root_ / "bin/guest");
    const OwnFolders own = own_folders(root_ / "bin/glovebox");
    EXPECT_EQ(own.images, root_ / "bin/images");
    EXPECT_EQ(own.guest, root_ / "bin/guest");
}

TEST_F(OwnFoldersTest, AreTheSystemsWhereNothingIs) {
    const OwnFolders own = own_folders(root_ / "bin/glovebox");
    EXPECT_EQ(own.images, "/usr/share/glovebox/images");
    EXPECT_EQ(own.guest, "/usr/lib/glovebox/guest");
}

TEST_F(OwnFoldersTest, AProgramIsCalledByItsNameWhereThePathLeadsToIt) {
    std::ofstream(root_ / "bin/glovebox") << "";
    const fs::path program = root_ / "bin/glovebox";
    EXPECT_EQ(called_as(program, "/nowhere:" + (root_ / "bin").string()), "glovebox");
    EXPECT_EQ(called_as(program, "/nowhere"), program.string());
    EXPECT_EQ(called_as(program, ""), program.string());
    fs::create_directories(root_ / "other");
    std::ofstream(root_ / "other/glovebox") << "";
    EXPECT_EQ(called_as(program, (root_ / "other").string() + ":" + (root_ / "bin").string()), program.string())
        << "the shell would run another one";
}

}  // namespace
}  // namespace gb::cli
