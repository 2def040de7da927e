// SPDX-License-Identifier: Apache-2.0
// The folder that becomes "/" in a machine's jail: QEMU, the libraries and ROM files that it loads, and mount
// points for a sandbox's own files. Nothing else of the host can be seen from there. Made once for each set
// of files, named by their hash, never changed afterwards; old ones may be removed when no machine uses them.
#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace gb::engine {

inline constexpr const char* kVmmBinary = "/usr/bin/qemu-system-x86_64";  // inside a root

struct QemuVersion {
    int major = 0;
    int minor = 0;
    int patch = 0;
    auto operator<=>(const QemuVersion&) const = default;
    [[nodiscard]] std::string text() const;
};
// Its backend of a private memory image can open the file read-only (readonly=on,rom=off). Before, the preloaded library does
// it; never both.
constexpr bool has_readonly_backend(const QemuVersion& version) {
    return version >= QemuVersion{8, 2, 0};
}
// From the first line of `qemu --version`; invalid_argument when it is something else.
Result<QemuVersion> parse_qemu_version(std::string_view output);

// Where the distribution keeps things. The defaults are Debian's and work for most others.
struct VmmFiles {
    std::filesystem::path qemu = "/usr/bin/qemu-system-x86_64";
    std::vector<std::filesystem::path> module_folders{"/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu",
                                                      "/usr/lib/qemu"};
    std::vector<std::filesystem::path> rom_folders{"/usr/share/qemu", "/usr/share/seabios",
                                                   "/usr/share/qemu-kvm"};
};

struct VmmRoot {
    std::filesystem::path path;
    std::string id;  // hash of everything in it; machines restored from a capture need the same QEMU
    QemuVersion version;
    std::string binary;  // inside
    std::vector<std::string> environment;
};

// What prepare_vmm_root() would make of the installed files, without making it. not_found when QEMU is not installed.
struct VmmIdentity {
    std::string id;
    QemuVersion version;
};
Result<VmmIdentity> identify_vmm(const VmmFiles& files = {});

// Makes the root below `folder` (for instance <data>/vmm), or finds it there. not_found when QEMU is not
// installed.
Result<VmmRoot> prepare_vmm_root(const std::filesystem::path& folder, const VmmFiles& files = {});

// The libraries that the dynamic loader names for a program, with the loader itself. Pure: parses its answer.
std::vector<std::filesystem::path> parse_loader_list(std::string_view output);

}  // namespace gb::engine
