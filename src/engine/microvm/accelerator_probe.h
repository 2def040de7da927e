// SPDX-License-Identifier: Apache-2.0
// Whether hardware virtualisation works here. /dev/kvm alone proves nothing: on some hosts it opens, makes
// virtual machines, and cannot run an ordinary kernel. So the guest kernel is really booted under KVM, once
// for each boot of the host, kernel and QEMU, and the answer is kept in a file.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/microvm/microvm_engine.h"

namespace gb::engine {

struct AcceleratorChoice {
    Accelerator accelerator = Accelerator::tcg;
    std::string reason;   // for a person: why this one
    bool cached = false;  // the answer of an earlier probe
};

// The guest's init prints this line and powers off when its kernel command line has `glovebox.probe`.
inline constexpr std::string_view kProbeAnswer = "glovebox-probe: ok";
inline constexpr std::string_view kProbeParameter = "glovebox.probe";

struct ProbeOptions {
    KernelSpec kernel;                   // its command line for KVM, without the parameter
    JailSpec jail;                       // for the machine that is tried
    std::filesystem::path state_folder;  // the cache, and the machine's files while it lives
    // Of a processor, not of the clock: a busy host is not one without KVM. A guest that does not come up and needs no
    // processor either is given up after `longest`.
    std::chrono::milliseconds limit{20'000};
    std::chrono::milliseconds longest{180'000};
    std::filesystem::path device = "/dev/kvm";
};

// Never an error: what cannot be probed is emulated, and the reason says so.
AcceleratorChoice probe_accelerator(MicrovmEngine& engine, const ProbeOptions& options);

// The cache file's form, pure. The key binds an answer to what it was found with.
std::string probe_key(std::string_view boot_id, std::string_view kernel_hash, std::string_view vmm_id);
std::string format_probe(std::string_view key, const AcceleratorChoice& choice);
std::optional<AcceleratorChoice> parse_probe(std::string_view text, std::string_view key);

}  // namespace gb::engine
