// SPDX-License-Identifier: Apache-2.0
#include "image/modules.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace gb::image {
namespace {

// kernel/drivers/char/hw_random/virtio-rng.ko.xz -> virtio_rng; the kernel takes - and _ for the same.
std::string module_name(std::string_view path) {
    std::string_view file = path.substr(path.rfind('/') + 1);
    std::string name(file.substr(0, file.find(".ko")));
    std::ranges::replace(name, '-', '_');
    return name;
}

template <class Fn>
void for_each_part(std::string_view text, char separator, Fn fn) {
    while (!text.empty()) {
        std::size_t end = std::min(text.find(separator), text.size());
        if (end > 0) fn(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace

std::vector<std::string> guest_modules() {
    return {"virtio_mmio", "virtio_blk", "virtio_net", "virtio_rng", "fuse"};
}

Result<std::vector<std::string>> module_load_order(std::string_view dep, std::string_view builtin,
                                                   const std::vector<std::string>& wanted) {
    struct Module {
        std::string file;
        std::vector<std::string> needs;  // the first needed first
    };
    std::map<std::string, Module> modules;
    for_each_part(dep, '\n', [&](std::string_view line) {
        std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return;
        Module module{.file = std::string(line.substr(0, colon))};
        // depmod lists what must be loaded last first.
        for_each_part(line.substr(colon + 1), ' ',
                      [&](std::string_view file) { module.needs.emplace_back(file); });
        std::ranges::reverse(module.needs);
        modules[module_name(module.file)] = std::move(module);
    });
    std::set<std::string> built_in;
    for_each_part(builtin, '\n', [&](std::string_view line) { built_in.insert(module_name(line)); });

    std::vector<std::string> order;
    auto add = [&](const std::string& file) {
        if (std::ranges::find(order, file) == order.end()) order.push_back(file);
    };
    for (const std::string& name : wanted) {
        std::string key = module_name(name);
        auto found = modules.find(key);
        if (found == modules.end()) {
            if (built_in.contains(key)) continue;
            return fail(ErrorCode::not_found, fmt::format("the guest kernel has no module {}", name));
        }
        for (const std::string& file : found->second.needs) add(file);
        add(found->second.file);
    }
    return order;
}

}  // namespace gb::image
