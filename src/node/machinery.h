// The parts of a host that machines need, opened together: control groups, network, engine, accelerator. What a dead
// process of the same instance left behind is reclaimed first.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/cgroup.h"
#include "engine/microvm/microvm_engine.h"
#include "net/host_network.h"

namespace gb {

struct NodeOptions {
    std::filesystem::path data_dir = "/var/lib/glovebox";
    std::filesystem::path cache_dir = "/var/cache/glovebox";  // what can be built or downloaded again
    std::filesystem::path templates_dir;                      // captured templates; empty: data_dir/templates
    std::filesystem::path images_dir;                         // template definitions
    std::filesystem::path guest_dir;                          // glovebox-init, glovebox-agent, glovebox-interpreter
    std::size_t ready_slots = 4;
    std::uint64_t memory_reserve_mib = 512;  // of the host, never given to sandboxes

    [[nodiscard]] std::filesystem::path templates() const {
        return templates_dir.empty() ? data_dir / "templates" : templates_dir;
    }
};

struct Machinery {
    std::string instance;
    engine::CgroupLayout cgroups;
    std::unique_ptr<engine::MicrovmEngine> engine;
    std::unique_ptr<net::HostNetwork> network;
};

// `instance` names everything that is made; the same one again reclaims.
Result<Machinery> open_machinery(const NodeOptions& options, const std::string& instance);

// The user that the machine in this slot runs as: no two machines of this host share one.
uid_t machine_uid(std::uint16_t instance_tag, std::size_t slot_number);

}  // namespace gb
