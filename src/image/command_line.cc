// SPDX-License-Identifier: Apache-2.0
#include "image/command_line.h"

#include <cstdint>

#include <fmt/format.h>
#include <time.h>
#include <x86intrin.h>

namespace gb::image {
namespace {

constexpr std::uint64_t kTicksPerSecond = 250;  // CONFIG_HZ of Debian's kernels

struct Instant {
    std::uint64_t tsc;
    std::int64_t ns;
};

// The counter and the clock at one moment: of several readings, the one that was interrupted least.
Instant now() {
    Instant best{};
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < 20; ++i) {
        timespec ts{};
        const std::uint64_t before = __rdtsc();
        ::clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
        const std::uint64_t took = __rdtsc() - before;
        if (took >= least) continue;
        least = took;
        best = {before + took / 2, ts.tv_sec * 1'000'000'000LL + ts.tv_nsec};
    }
    return best;
}

}  // namespace

std::string kernel_command_line(const CommandLine& options) {
    // reboot=t: a triple fault, which QEMU's -no-reboot turns into its end; microvm has no ACPI power-off.
    // panic=-1: restart at once. mitigations=off: they guard the guest's kernel from its own users, who may
    // become root by design; the host's guard the host. transparent_hugepage=madvise: else the kernel clears
    // 2 MiB where a program touches 4 KiB, and every page written is one that a snapshot has to store.
    std::string out = "console=ttyS0 reboot=t panic=-1 mitigations=off transparent_hugepage=madvise";
    if (options.quiet) out += " quiet";
    if (options.processor == Processor::emulated) {
        // Calibrating the counter needs timers that microvm does not have: the kernel would stop there. lpj,
        // loops of the delay routine per tick, follows from it. tsc=reliable: when the host stalls, the clock
        // source watchdog would blame the counter and fall back to counting timer ticks, which loses time for
        // ever.
        out += fmt::format(" tsc_early_khz={} no_timer_check lpj={} tsc=reliable", options.tsc_khz,
                           options.tsc_khz * 1000ULL / kTicksPerSecond);
    }
    if (options.probe) out += " glovebox.probe";
    if (options.trial) out += " glovebox.trial";
    for (const std::string& part : options.extra) out += " " + part;
    return out;
}

unsigned measure_tsc_khz() {
    const Instant start = now();
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
    ::nanosleep(&pause, nullptr);
    const Instant end = now();
    const std::uint64_t khz =
        (end.tsc - start.tsc) * 1'000'000 / static_cast<std::uint64_t>(end.ns - start.ns);
    // Rounded by a few millionths, less than any two clocks differ, so that the same machine gives the same
    // number.
    return static_cast<unsigned>((khz + 5) / 10 * 10);
}

}  // namespace gb::image
