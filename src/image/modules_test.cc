// SPDX-License-Identifier: Apache-2.0
#include "image/modules.h"

#include <gmock/gmock.h>

namespace gb::image {
namespace {

using testing::ElementsAre;

constexpr std::string_view kDep =
    "kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio.ko "
    "kernel/drivers/virtio/virtio_ring.ko\n"
    "kernel/drivers/char/hw_random/virtio-rng.ko.xz: kernel/drivers/virtio/virtio.ko "
    "kernel/drivers/virtio/virtio_ring.ko\n"
    "kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko\n"
    "kernel/drivers/virtio/virtio_ring.ko:\n";

TEST(Modules, WhatIsNeededLoadsFirstAndOnce) {
    auto order = module_load_order(kDep, "", {"virtio_blk", "virtio_rng"});
    ASSERT_TRUE(order) << order.error().message;
    EXPECT_THAT(*order, ElementsAre("kernel/drivers/virtio/virtio_ring.ko", "kernel/drivers/virtio/virtio.ko",
                                    "kernel/drivers/block/virtio_blk.ko",
                                    "kernel/drivers/char/hw_random/virtio-rng.ko.xz"));
}

TEST(Modules, BuiltInsAreLeftOut) {
    auto order = module_load_order(kDep, "kernel/fs/fuse/fuse.ko\n", {"fuse", "virtio"});
    ASSERT_TRUE(order) << order.error().message;
    EXPECT_THAT(*order,
                ElementsAre("kernel/drivers/virtio/virtio_ring.ko", "kernel/drivers/virtio/virtio.ko"));
}

TEST(Modules, MissingOnesAreNamed) {
    auto order = module_load_order(kDep, "", {"virtio_net"});
    ASSERT_FALSE(order);
    EXPECT_EQ(order.error().code, ErrorCode::not_found);
    EXPECT_EQ(order.error().message, "the guest kernel has no module virtio_net");
}

}  // namespace
}  // namespace gb::image
