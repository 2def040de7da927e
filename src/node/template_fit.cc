// SPDX-License-Identifier: Apache-2.0
#include "node/template_fit.h"

#include <charconv>
#include <cmath>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"
#include "engine/microvm/vmm_root.h"
#include "image/command_line.h"

namespace gb {
namespace {

// What KVM tolerates too; 20 seconds a day.
constexpr double kClockTolerance = 250e-6;

Status check_vmm(const Manifest& m, const HostFacts& host) {
    if (m.vmm_id == host.vmm_id) return {};
    const std::string what =
        m.vmm_version == host.vmm_version
            ? fmt::format("another build of QEMU {} (its libraries or Glovebox's own part of it differ)",
                          m.vmm_version)
            : fmt::format("QEMU {}, and this machine has {}", m.vmm_version, host.vmm_version);
    return fail(
        ErrorCode::failed_precondition,
        fmt::format("template '{0}' was captured with {1}: install the same packages of QEMU and Glovebox on "
                    "both machines, or make it here with `glovebox template prepare {0}`",
                    m.info.name, what));
}

Status check_clock(const Manifest& m, const HostFacts& host) {
    const unsigned wanted =
        m.accelerator == engine::Accelerator::tcg ? believed_tsc_khz(m.command_line) : m.tsc_khz;
    if (wanted == 0 || host.tsc_khz == 0) return {};
    const double rate = static_cast<double>(host.tsc_khz) / wanted - 1;
    if (std::abs(rate) <= kClockTolerance) return {};
    return fail(
        ErrorCode::failed_precondition,
        fmt::format(
            "template '{0}' was captured where the time stamp counter runs at {1} kHz, and here it runs at "
            "{2} kHz: its clock would be wrong by {3:.2f} %; make it here with `glovebox template prepare "
            "{0}`",
            m.info.name, wanted, host.tsc_khz, std::abs(rate) * 100));
}

}  // namespace

unsigned believed_tsc_khz(std::string_view kernel_command_line) {
    constexpr std::string_view kName = "tsc_early_khz=";
    const std::size_t at = kernel_command_line.find(kName);
    unsigned out = 0;
    if (at == std::string_view::npos) return 0;
    const char* begin = kernel_command_line.data() + at + kName.size();
    const auto [end, ec] =
        std::from_chars(begin, kernel_command_line.data() + kernel_command_line.size(), out);
    return ec == std::errc() ? out : 0;
}

Result<HostFacts> look_at_host() {
    HostFacts out;
    GB_TRY_ASSIGN(engine::VmmIdentity vmm, engine::identify_vmm());
    out.vmm_id = std::move(vmm.id);
    out.vmm_version = vmm.version.text();
    if (auto device = open_file("/dev/kvm", O_RDWR); !device) out.kvm_trouble = device.error().message;
    if (auto processor = engine::this_processor()) out.processor = *std::move(processor);
    out.tsc_khz = image::measure_tsc_khz();
    return out;
}

Status check_fit(const Manifest& m, const HostFacts& host) {
    GB_TRY(check_vmm(m, host));
    if (m.accelerator == engine::Accelerator::kvm) {
        if (!host.kvm_trouble.empty())
            return fail(
                ErrorCode::failed_precondition,
                fmt::format(
                    "template '{0}' was captured under KVM, which this machine does not have ({1}): "
                    "`glovebox "
                    "doctor` says how to get it; or make it here with `glovebox template prepare {0}`",
                    m.info.name, host.kvm_trouble));
        // Builds of older versions do not say: they were made here.
        if (m.processor && host.processor)
            if (const std::string difference = engine::processor_difference(*m.processor, *host.processor);
                !difference.empty())
                return fail(
                    ErrorCode::failed_precondition,
                    fmt::format(
                        "template '{0}' needs another processor: {1}; make it here with `glovebox template "
                        "prepare {0}`",
                        m.info.name, difference));
        if (m.processor && !host.processor)
            return fail(
                ErrorCode::failed_precondition,
                fmt::format(
                    "template '{}' needs a certain processor, and /proc/cpuinfo does not say what this one "
                    "is",
                    m.info.name));
    }
    return check_clock(m, host);
}

}  // namespace gb
