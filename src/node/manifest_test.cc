// SPDX-License-Identifier: Apache-2.0
#include "node/manifest.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

Manifest example() {
    Manifest m;
    m.info = {"id", "base", "build", 2, 512, 4096, 1'700'000'000'000};
    m.key = "key";
    m.vmm_id = "vmm";
    m.vmm_version = "7.2.22";
    m.accelerator = engine::Accelerator::kvm;
    m.accelerator_reason = "it works";
    m.guest_kernel = "6.1";
    m.command_line = "console=ttyS0";
    m.start_cmd = "serve --all";
    m.default_user = "user";
    m.workdir = "/home/user";
    m.env = {{"LANG", "C.UTF-8"}, {"Q", "a\"b\n"}};
    return m;
}

TEST(Manifest, ReadsWhatItWrites) {
    auto read = parse_manifest(write_manifest(example()));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->info.name, "base");
    EXPECT_EQ(read->info.cpu_count, 2);
    EXPECT_EQ(read->info.created_ms, 1'700'000'000'000);
    EXPECT_EQ(read->accelerator, engine::Accelerator::kvm);
    EXPECT_EQ(read->env, example().env);
    EXPECT_EQ(write_manifest(*read), write_manifest(example()));
}

TEST(Manifest, KnowsTheProcessorAndWhereItCameFrom) {
    Manifest m = example();
    EXPECT_EQ(m.arrived_ms(), m.info.created_ms);
    m.processor = engine::Processor{"GenuineIntel", 6, 85, "Xeon", {"avx", "sse"}};
    m.tsc_khz = 2'600'000;
    m.imported_ms = 1'800'000'000'000;
    auto read = parse_manifest(write_manifest(m));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->processor, m.processor);
    EXPECT_EQ(read->tsc_khz, 2'600'000U);
    EXPECT_EQ(read->arrived_ms(), 1'800'000'000'000);
    std::string text = write_manifest(m);
    text.replace(text.find("\"vendor\""), 8, "\"other1\"");
    EXPECT_EQ(parse_manifest(text).error().code, ErrorCode::data_loss);
}

TEST(Manifest, ASnapshotKnowsItsImageAndWhatWasSaved) {
    Manifest m = example();
    EXPECT_EQ(m.image_id(), "build");
    m.image_build = "of the template";
    m.saved = SavedMemory{1, "abc", 2, 0xfedcba98};
    auto read = parse_manifest(write_manifest(m));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->image_id(), "of the template");
    ASSERT_TRUE(read->saved);
    EXPECT_EQ(read->saved->state_bytes, 1U);
    EXPECT_EQ(read->saved->state_sha256, "abc");
    EXPECT_EQ(read->saved->memory_bytes, 2U);
    EXPECT_EQ(read->saved->memory_checksum, 0xfedcba98U);
    std::string text = write_manifest(m);
    text.replace(text.find("state_sha256"), 5, "other");
    EXPECT_EQ(parse_manifest(text).error().code, ErrorCode::data_loss);
}

TEST(Manifest, AnythingElseIsRefused) {
    EXPECT_EQ(parse_manifest("").error().code, ErrorCode::data_loss);
    EXPECT_EQ(parse_manifest("[]").error().code, ErrorCode::data_loss);
    EXPECT_EQ(parse_manifest("{}").error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(parse_manifest(R"({"format":99})").error().code, ErrorCode::failed_precondition);
    auto lacking = parse_manifest(R"({"format":1,"id":"x"})");
    ASSERT_FALSE(lacking);
    EXPECT_NE(lacking.error().message.find("lacks"), std::string::npos);
}

}  // namespace
}  // namespace gb
