// SPDX-License-Identifier: Apache-2.0
#include "image/initramfs.h"

#include <gmock/gmock.h>

#include "base/subprocess.h"
#include "image/test_folder.h"

namespace gb::image {
namespace {

class InitramfsTest : public testing::Test {
  protected:
    InitramfsTest() {
        kernel_.modules_dir = folder_.path() / "modules";
        kernel_.modules = {"virtio.ko"};
        folder_.write("modules/virtio.ko", "module");
        init_ = folder_.write("init", "init", 0755);
        agent_ = folder_.write("agent", "agent", 0755);
        out_ = folder_.path() / "out.img";
    }

    TestFolder folder_;
    GuestKernel kernel_;
    std::filesystem::path init_, agent_, out_;
};

TEST_F(InitramfsTest, HoldsInitModulesAndPrograms) {
    auto startup = folder_.write("startup.py", "pass");
    auto status =
        build_initramfs(kernel_, init_, {{startup, "kernels/startup.py"}, {agent_, "glovebox-agent"}}, out_);
    ASSERT_TRUE(status) << status.error().message;
    auto unpacked = run_checked({"lz4", "-dc", out_.string()});
    ASSERT_TRUE(unpacked) << unpacked.error().message;
    RunOptions options;
    options.stdin_data = unpacked->out;
    auto listed = run_checked({"cpio", "-it", "--quiet"}, options);
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_EQ(
        listed->out,
        "dev\nproc\nsys\nnewroot\ndev/console\ninit\nmodules\nmodules/virtio.ko\nmodules/order\nglovebox\n"
        "glovebox/bin\nglovebox/bin/glovebox-agent\nglovebox/bin/kernels\nglovebox/bin/kernels/startup.py\n");
}

TEST_F(InitramfsTest, SameInputSameBytes) {
    auto other = folder_.write("other", "other");
    ASSERT_TRUE(build_initramfs(kernel_, init_, {{agent_, "glovebox-agent"}, {other, "other"}}, out_));
    auto first = read_file(out_);
    ASSERT_TRUE(build_initramfs(kernel_, init_, {{other, "other"}, {agent_, "glovebox-agent"}}, out_));
    auto second = read_file(out_);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(*first, *second);
}

TEST_F(InitramfsTest, RefusesPathsThatLeaveTheFolder) {
    for (const char* path : {"../etc/passwd", "/etc/passwd", "a/../../b", ""}) {
        auto status = build_initramfs(kernel_, init_, {{agent_, "glovebox-agent"}, {agent_, path}}, out_);
        ASSERT_FALSE(status) << path;
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
    }
    EXPECT_FALSE(build_initramfs(kernel_, init_, {}, out_));
}

TEST_F(InitramfsTest, FolderBecomesFilesBelowAPrefix) {
    folder_.write("kernels/python/startup.py", "");
    folder_.write("kernels/a.py", "");
    auto files = guest_files_in(folder_.path() / "kernels", "kernels");
    ASSERT_TRUE(files);
    ASSERT_EQ(files->size(), 2U);
    EXPECT_EQ(files->at(0).path, "kernels/a.py");
    EXPECT_EQ(files->at(1).path, "kernels/python/startup.py");
}

}  // namespace
}  // namespace gb::image
