// SPDX-License-Identifier: Apache-2.0
// QEMU's command line for one machine. Pure. Two machines of which one takes over the other's state must get
// the same devices, in the same order: everything that decides this is here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/microvm/vmm_root.h"

namespace gb::engine {

// Where a machine finds its files inside the jail: mount points of the VMM root.
inline constexpr const char* kJailDisk = "/vm/disk";
inline constexpr const char* kJailBase = "/vm/base";
inline constexpr const char* kJailMemory = "/vm/memory";
inline constexpr const char* kJailKernel = "/vm/kernel";
inline constexpr const char* kJailInitrd = "/vm/initrd";
inline constexpr const char* kJailRoms = "/usr/share/qemu";

struct CommandLineOptions {
    std::string binary = kVmmBinary;
    bool incoming = false;          // wait for a state instead of booting
    bool readonly_backend = false;  // the memory backend knows readonly=on,rom=off (QEMU 8.2 and later)
    unsigned translation_cache_mib = 128;
    int monitor_fd = 3;
    int tap_fd = 4;
};

// Descriptors: 1 is the guest's console, 2 what QEMU prints.
Result<std::vector<std::string>> qemu_command_line(const MachineSpec& spec,
                                                   const CommandLineOptions& options);

// The processor model that is taken when the specification names none.
std::string default_cpu_model(Accelerator accelerator);

}  // namespace gb::engine
