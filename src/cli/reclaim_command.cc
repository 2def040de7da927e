// SPDX-License-Identifier: Apache-2.0
// Ends what a server left behind when it stopped, without starting another one: for the removal of the program, after
// which nobody would end a sandbox at the end of its lifetime.
#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "engine/cgroup.h"
#include "engine/microvm/strays.h"
#include "net/host_network.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;

// No machinery: what makes machines (QEMU, its libraries) may be half removed by now.
Status reclaim(const fs::path& folder) {
    std::error_code ec;
    if (!fs::exists(folder / "instance", ec)) {
        fmt::print("{} has no sandboxes\n", folder.string());
        return {};
    }
    GB_TRY_ASSIGN(UniqueFd lock, lock_folder(folder, Busy::refuse));
    GB_TRY_ASSIGN(const std::string instance, instance_of(folder));
    GB_TRY_ASSIGN(const engine::CgroupLayout layout, engine::detect_cgroup_layout());
    std::vector<std::string> ended;
    Status groups = engine::reclaim_cgroups(layout, instance, &ended);
    GB_TRY(engine::kill_stray_vmms(folder / "vmm"));
    GB_TRY(std::move(groups));
    GB_TRY(net::HostNetwork::reclaim(instance));
    fmt::print("ended {} running sandboxes of {}; paused ones stay\n", ended.size(), folder.string());
    return {};
}

}  // namespace

void add_reclaim(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand(
        "reclaim", "End the sandboxes that a stopped server left running, and remove their networks");
    auto options = std::make_shared<NodeOptions>(default_node_options());
    add_data_dir(*command, *options);
    command->callback([&run, options] {
        run = [options] {
            Status status = reclaim(options->data_dir);
            return status ? 0 : complain(status.error());
        };
    });
}

}  // namespace gb::cli
