// SPDX-License-Identifier: Apache-2.0
#include "node/template_fit.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

Manifest emulated() {
    Manifest out;
    out.info.name = "base";
    out.vmm_id = "v1";
    out.vmm_version = "7.2.0";
    out.accelerator = engine::Accelerator::tcg;
    out.command_line = "console=ttyS0 tsc_early_khz=2600000 lpj=1";
    return out;
}

Manifest virtualised() {
    Manifest out = emulated();
    out.accelerator = engine::Accelerator::kvm;
    out.command_line = "console=ttyS0";
    out.processor = engine::Processor{"GenuineIntel", 6, 85, "Xeon", {"avx"}};
    out.tsc_khz = 2'600'000;
    return out;
}

HostFacts host() {
    return {"v1", "7.2.0", "", engine::Processor{"GenuineIntel", 6, 85, "Xeon", {"avx", "sse"}}, 2'600'010};
}

void expect_refusal(const Manifest& manifest, const HostFacts& facts, std::string_view words) {
    const Status status = check_fit(manifest, facts);
    ASSERT_FALSE(status) << words;
    EXPECT_EQ(status.error().code, ErrorCode::failed_precondition);
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
}

TEST(TemplateFit, TheSameMachineFits) {
    EXPECT_TRUE(check_fit(emulated(), host()));
    EXPECT_TRUE(check_fit(virtualised(), host()));
}

TEST(TemplateFit, AnEmulatedOneNeedsNeitherKvmNorTheProcessor) {
    HostFacts facts = host();
    facts.kvm_trouble = "open /dev/kvm: No such file or directory";
    facts.processor.reset();
    EXPECT_TRUE(check_fit(emulated(), facts));
}

TEST(TemplateFit, AnotherVmmIsRefusedAndNamed) {
    HostFacts facts = host();
    facts.vmm_id = "v2";
    expect_refusal(emulated(), facts, "another build of QEMU 7.2.0");
    facts.vmm_version = "8.2.1";
    expect_refusal(emulated(), facts, "QEMU 7.2.0, and this machine has 8.2.1");
}

TEST(TemplateFit, KvmIsNeededWhereItWasUsed) {
    HostFacts facts = host();
    facts.kvm_trouble = "open /dev/kvm: No such file or directory";
    expect_refusal(virtualised(), facts, "captured under KVM");
}

TEST(TemplateFit, UnderKvmTheProcessorMustBeTheSame) {
    HostFacts facts = host();
    facts.processor->flags = {"sse"};
    expect_refusal(virtualised(), facts, "cannot: avx");
    facts = host();
    facts.processor->vendor = "AuthenticAMD";
    expect_refusal(virtualised(), facts, "another processor");
    facts.processor.reset();
    expect_refusal(virtualised(), facts, "/proc/cpuinfo");
}

TEST(TemplateFit, AClockOfAnotherSpeedIsRefused) {
    HostFacts facts = host();
    facts.tsc_khz = 2'300'000;
    expect_refusal(emulated(), facts, "wrong by 11.54 %");
    expect_refusal(virtualised(), facts, "wrong by");
    facts.tsc_khz = 2'600'600;
    EXPECT_TRUE(check_fit(emulated(), facts));
    facts.tsc_khz = 2'600'700;
    expect_refusal(emulated(), facts, "time stamp counter");
}

TEST(TemplateFit, TheGuestsBeliefIsInItsCommandLine) {
    EXPECT_EQ(believed_tsc_khz("a tsc_early_khz=123 b"), 123U);
    EXPECT_EQ(believed_tsc_khz("a b"), 0U);
    EXPECT_EQ(believed_tsc_khz("tsc_early_khz="), 0U);
}

}  // namespace
}  // namespace gb
