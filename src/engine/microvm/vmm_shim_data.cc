// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/vmm_shim_data.h"

extern "C" {
extern const char gb_vmm_shim_begin[];
extern const char gb_vmm_shim_end[];
}

// GB_VMM_SHIM is the path of the built library, from CMake.
asm(".section .rodata\n"
    ".global gb_vmm_shim_begin\n"
    "gb_vmm_shim_begin:\n"
    ".incbin \"" GB_VMM_SHIM
    "\"\n"
    ".global gb_vmm_shim_end\n"
    "gb_vmm_shim_end:\n"
    ".previous\n");

namespace gb::engine {

std::string_view vmm_shim() {
    return {gb_vmm_shim_begin, static_cast<std::size_t>(gb_vmm_shim_end - gb_vmm_shim_begin)};
}

}  // namespace gb::engine
