// SPDX-License-Identifier: Apache-2.0
#include "node/machinery.h"

#include <map>

#include <fcntl.h>

#include <sys/file.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "net/address_block.h"

namespace gb {
namespace fs = std::filesystem;

Result<UniqueFd> lock_folder(const fs::path& folder, Busy busy) {
    GB_TRY(make_dirs(folder, 0711));
    GB_TRY_ASSIGN(UniqueFd fd, open_file(folder / "lock", O_RDWR | O_CREAT));
    int rc = 0;
    do rc = ::flock(fd.get(), LOCK_EX | (busy == Busy::refuse ? LOCK_NB : 0));
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return fail(ErrorCode::already_exists,
                    fmt::format("another server uses {}: stop it, or give this one a folder of its own with --data-dir",
                                folder.string()));
    return fd;
}

Result<std::string> instance_of(const fs::path& folder) {
    const fs::path file = folder / "instance";
    auto text = read_file(file);
    if (text && text->size() >= 12) return text->substr(0, 12);
    if (!text && text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
    std::string made = random_id(12);
    GB_TRY(write_file_atomic(file, made + "\n", 0600));
    return made;
}

Result<Machinery> open_machinery(const fs::path& folder, const std::string& instance,
                                 const net::Ceiling& ceiling, const AdoptMachines& adopt) {
    Machinery out;
    out.instance = instance;
    engine::MicrovmOptions engine_options;
    engine_options.data_folder = folder;
    engine_options.instance = instance;
    GB_TRY_ASSIGN(engine_options.cgroups, engine::detect_cgroup_layout());
    GB_TRY_ASSIGN(out.engine, engine::MicrovmEngine::create(std::move(engine_options)));
    // Processes first: a machine that still runs holds its network namespace, and with it its devices.
    if (adopt) out.survivors = adopt(*out.engine, net::instance_tag(instance));
    std::map<std::string, pid_t> keep;
    net::HostNetworkOptions network_options;
    network_options.instance = instance;
    network_options.ceiling = ceiling;
    for (const Survivor& survivor : out.survivors) {
        keep.emplace(survivor.record.cgroup_name(), survivor.machine->pid());
        network_options.keep.push_back(survivor.record.slot);
    }
    std::vector<std::string> groups;
    if (Status status = out.engine->reclaim(&groups, keep); !status)
        return std::unexpected(status.error().with("reclaim what the previous run left"));
    if (!groups.empty()) log::warn("ended machines that the previous run left", {{"machines", groups.size()}});
    GB_TRY_ASSIGN(out.network, net::HostNetwork::create(std::move(network_options)));
    return out;
}

uid_t machine_uid(std::uint16_t instance_tag, std::size_t slot_number) {
    constexpr uid_t kFirst = 1'000'000'000;  // far from people and from the ranges that container tools take
    return kFirst + uid_t{instance_tag} * 4096 + static_cast<uid_t>(slot_number);
}

}  // namespace gb
