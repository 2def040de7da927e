// SPDX-License-Identifier: Apache-2.0
#include "image/kernel.h"

#include "image/test_folder.h"

namespace gb::image {
namespace {

TEST(Kernel, MetaPackageNamesTheRealOne) {
    auto package = parse_kernel_package(
        "Package: linux-image-cloud-amd64\nSource: linux-signed-amd64 (6.1.192+3)\nVersion: 6.1.192-3\n"
        "Depends: linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)\nDescription: Linux for cloud\n Depends: "
        "no\n");
    ASSERT_TRUE(package) << package.error().message;
    EXPECT_EQ(package->name, "linux-image-6.1.0-57-cloud-amd64");
    EXPECT_EQ(package->version, "6.1.192-3");
}

TEST(Kernel, OtherAnswersAreErrors) {
    for (const char* text : {"", "Package: x\n", "Depends: libc6 (= 2.36)\n", "Depends: linux-image-6.1\n"}) {
        auto package = parse_kernel_package(text);
        ASSERT_FALSE(package) << text;
        EXPECT_EQ(package.error().code, ErrorCode::not_found);
    }
}

TEST(Kernel, CacheIsReadWithoutTheNetwork) {
    TestFolder cache;
    EXPECT_EQ(cached_kernel(cache.path()).error().code, ErrorCode::not_found);
    cache.write("kernel/6.1.9-1/vmlinuz", "k");
    cache.write("kernel/6.1.9-1/release", "6.1.0-9-cloud-amd64\n");
    cache.write("kernel/6.1.9-1/version", "6.1.9-1\n");
    cache.write("kernel/6.1.9-1/modules/order", "virtio.ko\nvirtio_blk.ko\n");
    cache.write("kernel/current", "6.1.9-1\n");
    auto kernel = prepare_kernel(cache.path());
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(kernel->vmlinuz, cache.path() / "kernel/6.1.9-1/vmlinuz");
    EXPECT_EQ(kernel->release, "6.1.0-9-cloud-amd64");
    EXPECT_EQ(kernel->version, "6.1.9-1");
    EXPECT_EQ(kernel->modules, (std::vector<std::string>{"virtio.ko", "virtio_blk.ko"}));
}

}  // namespace
}  // namespace gb::image
