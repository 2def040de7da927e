// SPDX-License-Identifier: Apache-2.0
#include "image/cpio.h"

#include <gtest/gtest.h>

#include "base/subprocess.h"
#include "image/test_folder.h"

namespace gb::image {
namespace {

TEST(Cpio, HeaderIsNewc) {
    CpioArchive archive;
    archive.add_file("init", "abc", 0755);
    std::string bytes = std::move(archive).finish();
    //                            inode   mode    uid     gid     links   mtime   size
    EXPECT_EQ(bytes.substr(0, 62),
              "070701"
              "00000001"
              "000081ED"
              "00000000"
              "00000000"
              "00000001"
              "00000000"
              "00000003");
    EXPECT_EQ(bytes.substr(110, 5), std::string("init\0", 5));
    EXPECT_EQ(bytes.substr(116, 4), std::string("abc\0", 4));  // content starts and ends on multiples of four
    EXPECT_EQ(bytes.size() % 512, 0U);
    EXPECT_NE(bytes.find("TRAILER!!!"), std::string::npos);
}

TEST(Cpio, OtherProgramsReadIt) {
    TestFolder folder;
    CpioArchive archive;
    archive.add_folder("modules");
    archive.add_file("modules/order", "virtio.ko\n");
    archive.add_file("empty", "");
    archive.add_char_device("console", 5, 1);
    RunOptions options;
    options.stdin_data = std::move(archive).finish();
    auto listed = run_checked({"cpio", "-itv", "--quiet"}, options);
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_NE(listed->out.find("drwxr-xr-x   2 root     root            0 Jan  1  1970 modules\n"),
              std::string::npos)
        << listed->out;
    EXPECT_NE(listed->out.find("10 Jan  1  1970 modules/order\n"), std::string::npos) << listed->out;
    EXPECT_NE(listed->out.find("crw-------   1 root     root       5,   1"), std::string::npos)
        << listed->out;
}

}  // namespace
}  // namespace gb::image
