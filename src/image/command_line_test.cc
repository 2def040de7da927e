// SPDX-License-Identifier: Apache-2.0
#include "image/command_line.h"

#include <gtest/gtest.h>

namespace gb::image {
namespace {

TEST(CommandLine, OnHardware) {
    EXPECT_EQ(kernel_command_line({}),
              "console=ttyS0 reboot=t panic=-1 mitigations=off transparent_hugepage=madvise quiet");
}

// KVM tells the guest its clock itself; what emulation needs would only hide a fault of it.
TEST(CommandLine, OnHardwareNothingIsSaidOfTheClock) {
    const std::string line = kernel_command_line({.tsc_khz = 2'300'000, .trial = true});
    for (const char* part : {"tsc", "lpj", "no_timer_check", "clocksource"})
        EXPECT_EQ(line.find(part), std::string::npos) << part;
    EXPECT_TRUE(line.ends_with(" quiet glovebox.trial")) << line;
}

TEST(CommandLine, EmulatedGuestsAreToldTheirClock) {
    EXPECT_EQ(kernel_command_line({.processor = Processor::emulated, .tsc_khz = 2'300'000}),
              "console=ttyS0 reboot=t panic=-1 mitigations=off transparent_hugepage=madvise quiet "
              "tsc_early_khz=2300000 no_timer_check lpj=9200000 tsc=reliable");
}

TEST(CommandLine, DelayLoopsOfQuickProcessorsDoNotOverflow) {
    std::string line = kernel_command_line({.processor = Processor::emulated, .tsc_khz = 4'900'000});
    EXPECT_NE(line.find(" lpj=19600000 "), std::string::npos) << line;
}

TEST(CommandLine, ExtraPartsComeLast) {
    std::string line = kernel_command_line(
        {.quiet = false, .probe = true, .extra = {"glovebox.ip=10.11.0.2/30", "glovebox.gw=10.11.0.1"}});
    EXPECT_EQ(line,
              "console=ttyS0 reboot=t panic=-1 mitigations=off transparent_hugepage=madvise glovebox.probe "
              "glovebox.ip=10.11.0.2/30 glovebox.gw=10.11.0.1");
}

TEST(CommandLine, CounterOfThisMachineIsPlausible) {
    unsigned first = measure_tsc_khz();
    EXPECT_GT(first, 200'000U);
    EXPECT_LT(first, 10'000'000U);
    EXPECT_NEAR(first, measure_tsc_khz(), 1e-4 * first);
}

}  // namespace
}  // namespace gb::image
