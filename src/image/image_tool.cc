// SPDX-License-Identifier: Apache-2.0
// image_tool: makes the files that guests are started from, as the server does.
//   image_tool kernel                                             newest kernel of the archive
//   image_tool rootfs <images folder> <definition>
//   image_tool initramfs <out> <glovebox-init> <source>=<path>…
// The cache folder is $GLOVEBOX_CACHE or /var/cache/glovebox.
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "image/command_line.h"
#include "image/initramfs.h"
#include "image/kernel.h"
#include "image/rootfs.h"

namespace gb::image {
namespace {

int complain(const Error& error) {
    fmt::print(stderr, "image_tool: {}\n", error.message);
    return 1;
}

int main_with(const std::vector<std::string>& args) {
    const char* set = std::getenv("GLOVEBOX_CACHE");
    const std::filesystem::path cache = set != nullptr ? set : "/var/cache/glovebox";
    ProgressFn progress = [](const Progress& p) {
        fmt::print(stderr, "{:3.0f} %  {}: {}\n", p.fraction * 100, p.step, p.detail);
    };
    if (args.size() == 1 && args[0] == "kernel") {
        auto kernel = prepare_kernel(cache, progress, KernelUpdate::look_for_newer);
        if (!kernel) return complain(kernel.error());
        fmt::print("{} {}\n", kernel->release, kernel->vmlinuz.string());
        return 0;
    }
    if (args.size() == 3 && args[0] == "rootfs") {
        auto definition = load_definition(args[1], args[2]);
        if (!definition) return complain(definition.error());
        auto image = build_rootfs(*definition, cache, progress);
        if (!image) return complain(image.error());
        fmt::print("{} {} MiB of {} MiB{}\n", image->file.string(), image->stored_bytes >> 20,
                   image->size_bytes >> 20, image->cached ? ", from the cache" : "");
        return 0;
    }
    if (args.size() >= 4 && args[0] == "initramfs") {
        auto kernel = prepare_kernel(cache, progress);
        if (!kernel) return complain(kernel.error());
        std::vector<GuestFile> files;
        for (std::size_t i = 3; i < args.size(); ++i) {
            std::size_t equals = args[i].find('=');
            if (equals == std::string::npos)
                return complain({ErrorCode::invalid_argument, args[i] + " is not <source>=<path>"});
            files.push_back({args[i].substr(0, equals), args[i].substr(equals + 1)});
        }
        if (auto status = build_initramfs(*kernel, args[2], files, args[1]); !status)
            return complain(status.error());
        CommandLine line{.processor = Processor::emulated, .tsc_khz = measure_tsc_khz()};
        fmt::print("{}\n", kernel_command_line(line));
        return 0;
    }
    fmt::print(
        stderr,
        "usage: image_tool kernel | rootfs <images> <name> | initramfs <out> <init> <source>=<path>…\n");
    return 2;
}

}  // namespace
}  // namespace gb::image

int main(int argc, char** argv) {
    return gb::image::main_with({argv + 1, argv + argc});
}
