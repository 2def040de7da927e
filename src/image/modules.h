// SPDX-License-Identifier: Apache-2.0
// Which kernel modules a guest needs and in which order they load. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::image {

// Names of the modules that a guest loads: its disk, its network, its source of random numbers, and FUSE.
// virtio-mmio devices are found through ACPI.
std::vector<std::string> guest_modules();

// Files of the wanted modules and of all they depend on, in load order, each once, as modules.dep names them
// (kernel/drivers/…/virtio_blk.ko, perhaps with .xz or .zst). Modules built into the kernel are left out.
// `dep` and `builtin` are the texts of modules.dep(5) and modules.builtin. not_found names a module in
// neither.
Result<std::vector<std::string>> module_load_order(std::string_view dep, std::string_view builtin,
                                                   const std::vector<std::string>& wanted);

}  // namespace gb::image
