// SPDX-License-Identifier: Apache-2.0
#include "engine/processor.h"

#include <gtest/gtest.h>

namespace gb::engine {
namespace {

constexpr std::string_view kText =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon 1\n"
    "flags\t\t: fpu sse2 avx avx\nbugs\t\t:\n\n"
    "processor\t: 1\nvendor_id\t: Other\nflags\t\t: fpu\n";

TEST(Processor, IsReadFromTheFirstOfTheList) {
    auto processor = parse_cpuinfo(kText);
    ASSERT_TRUE(processor) << processor.error().message;
    EXPECT_EQ(*processor, (Processor{"GenuineIntel", 6, 85, "Xeon 1", {"avx", "fpu", "sse2"}}));
}

TEST(Processor, AnIncompleteListIsRefused) {
    for (std::string_view text :
         {"", "\n", "processor : 0\n", "vendor_id: A\ncpu family: x\nmodel: 1\nmodel name: n\nflags: f\n"})
        EXPECT_FALSE(parse_cpuinfo(text)) << text;
}

TEST(Processor, ThisMachineHasOne) {
    auto processor = this_processor();
    ASSERT_TRUE(processor) << processor.error().message;
    EXPECT_EQ(processor_difference(*processor, *processor), "");
}

TEST(Processor, MoreFlagsAreNoDifferenceAndFewerAre) {
    const Processor less{"GenuineIntel", 6, 85, "Xeon 1", {"avx", "fpu"}};
    const Processor more{"GenuineIntel", 6, 85, "Xeon 2", {"amx", "avx", "fpu"}};
    EXPECT_EQ(processor_difference(less, more), "");
    EXPECT_NE(processor_difference(more, less).find("cannot: amx"), std::string::npos);
    Processor other = more;
    other.model = 106;
    EXPECT_NE(processor_difference(more, other).find("model 85"), std::string::npos);
}

}  // namespace
}  // namespace gb::engine
