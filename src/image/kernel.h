// SPDX-License-Identifier: Apache-2.0
// The guest kernel: Debian's linux-image-cloud-amd64, unpacked and never installed on the host.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/progress.h"

namespace gb::image {

struct GuestKernel {
    std::filesystem::path vmlinuz;      // <cache>/kernel/<version>/vmlinuz
    std::filesystem::path config;       // its build configuration
    std::filesystem::path modules_dir;  // <cache>/kernel/<version>/modules: *.ko, uncompressed, and `order`
    std::vector<std::string> modules;   // file names in load order
    std::string release;                // uname -r, e.g. 6.1.0-57-cloud-amd64
    std::string version;                // of the package, e.g. 6.1.192-3
};

enum class KernelUpdate { use_cached, look_for_newer };

// The kernel in the cache, or the newest of the Debian archive when there is none or a newer one is asked
// for. Needs the network only then; never root. Blocks. Safe to call from several processes.
Result<GuestKernel> prepare_kernel(const std::filesystem::path& cache, const ProgressFn& progress = {},
                                   KernelUpdate update = KernelUpdate::use_cached);

// The kernel that prepare_kernel() made last; not_found when there is none.
Result<GuestKernel> cached_kernel(const std::filesystem::path& cache);

// What `apt-cache show linux-image-cloud-amd64` says it depends on. Pure.
struct KernelPackage {
    std::string name;     // linux-image-6.1.0-57-cloud-amd64
    std::string version;  // 6.1.192-3
};
Result<KernelPackage> parse_kernel_package(std::string_view apt_cache_show);

}  // namespace gb::image
