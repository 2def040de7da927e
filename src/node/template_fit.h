// SPDX-License-Identifier: Apache-2.0
// Whether a captured template can be started on a machine: a capture goes on only where its VMM, its
// accelerator, its processor and its clock are as they were.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/processor.h"
#include "node/manifest.h"

namespace gb {

inline constexpr std::string_view kArchitecture = "x86_64";  // the only one that machines are made of

struct HostFacts {
    std::string vmm_id, vmm_version;
    std::string kvm_trouble;  // why /dev/kvm cannot be used; empty: it opens
    std::optional<engine::Processor> processor;
    unsigned tsc_khz = 0;  // of its time stamp counter
};
// not_found when QEMU is not installed. Reads QEMU and its libraries (about 100 MB), and takes 0.1 s for the
// clock.
Result<HostFacts> look_at_host();

// failed_precondition says what differs and what to do. Pure.
Status check_fit(const Manifest& manifest, const HostFacts& host);

// How fast the guest believes its time stamp counter to run; 0: it asks the hardware. Pure.
unsigned believed_tsc_khz(std::string_view kernel_command_line);

}  // namespace gb
