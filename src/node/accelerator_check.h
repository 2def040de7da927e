// SPDX-License-Identifier: Apache-2.0
// Which accelerator machines get here: hardware virtualisation is tried with a real kernel.
#pragma once

#include <filesystem>

#include "engine/microvm/accelerator_probe.h"
#include "node/machinery.h"

namespace gb {

// `folder` keeps the answer, and what the trial needs while it lasts. The command line of `kernel` is the one
// for KVM.
engine::AcceleratorChoice check_accelerator(Machinery& machinery, const std::filesystem::path& folder,
                                            engine::KernelSpec kernel);

// The machinery of who builds or tries templates: in the data folder, but beside a server's, for one process
// at a time.
struct BuilderMachinery {
    UniqueFd lock;
    Machinery machinery;
};
std::filesystem::path builder_folder(const NodeOptions& options);
Result<BuilderMachinery> open_builder_machinery(const NodeOptions& options);  // waits for its turn

}  // namespace gb
