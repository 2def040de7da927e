// SPDX-License-Identifier: Apache-2.0
// The command line of the guest kernel. Pure.
#pragma once

#include <string>
#include <vector>

namespace gb::image {

enum class Processor { hardware, emulated };  // KVM, or QEMU's TCG

struct CommandLine {
    Processor processor = Processor::hardware;
    unsigned tsc_khz = 0;  // of the host's time stamp counter; needed when emulated, see measure_tsc_khz()
    bool quiet = true;     // false: all messages of the kernel on the console
    bool probe = false;    // glovebox-init says `glovebox-probe: ok` and restarts, nothing else
    bool trial = false;    // glovebox-init tries the machine, for ever (guest/init/trial.h)
    std::vector<std::string> extra;  // e.g. glovebox.ip=10.11.0.2/30; parts with blanks are not possible
};

std::string kernel_command_line(const CommandLine& options);

// The rate of this processor's time stamp counter, measured against the monotonic clock for a tenth of a
// second. QEMU's emulation passes that counter through, and a guest without hardware help cannot measure it.
unsigned measure_tsc_khz();

}  // namespace gb::image
