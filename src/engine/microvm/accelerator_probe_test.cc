// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/accelerator_probe.h"

#include <gtest/gtest.h>

namespace gb::engine {
namespace {

TEST(ProbeCache, AnswersOnlyForItsKey) {
    const std::string key = probe_key("boot-1", "kernel-1", "vmm-1");
    const std::string text = format_probe(key, {Accelerator::kvm, "the guest kernel boots under KVM", false});
    auto same = parse_probe(text, key);
    ASSERT_TRUE(same.has_value());
    EXPECT_EQ(same->accelerator, Accelerator::kvm);
    EXPECT_EQ(same->reason, "the guest kernel boots under KVM");
    EXPECT_TRUE(same->cached);
    for (const std::string& other :
         {probe_key("boot-2", "kernel-1", "vmm-1"), probe_key("boot-1", "kernel-2", "vmm-1"),
          probe_key("boot-1", "kernel-1", "vmm-2"), std::string()})
        EXPECT_FALSE(parse_probe(text, other).has_value()) << other;
}

TEST(ProbeCache, DamageMeansNoAnswer) {
    const std::string key = probe_key("b", "k", "v");
    for (const char* text : {"", "nonsense", "[]", "{}", R"({"key":1})", R"({"key":"b/k/v"})",
                             R"({"key":"b/k/v","accelerator":"xen"})", R"({"key":"b/k/v","accelerator":7})"})
        EXPECT_FALSE(parse_probe(text, key).has_value()) << text;
}

}  // namespace
}  // namespace gb::engine
