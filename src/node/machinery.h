// SPDX-License-Identifier: Apache-2.0
// The parts of a host that machines need, opened together: control groups, network, engine, accelerator. What a dead
// process of the same instance left behind is taken over or reclaimed first.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/microvm/microvm_engine.h"
#include "net/host_network.h"
#include "node/network_options.h"
#include "node/survivors.h"
#include "node/warm_demand.h"

namespace gb {

struct NodeOptions {
    std::filesystem::path data_dir = "/var/lib/glovebox";
    std::filesystem::path cache_dir = "/var/cache/glovebox";  // what can be built or downloaded again
    std::filesystem::path templates_dir;                      // captured templates; empty: data_dir/templates
    std::filesystem::path images_dir;                         // template definitions
    std::filesystem::path guest_dir;                          // what runs inside: glovebox-init, -agent, -interpreter, -probe
    std::size_t ready_slots = 4;
    std::uint64_t memory_reserve_mib = 512;  // of the host, never given to sandboxes
    // So long each step of a template's build on its machine may take, whatever moves.
    std::chrono::milliseconds prepare_ceiling = std::chrono::hours(4);
    // The `glovebox` program, to prepare a template with that somebody wants and that is only defined; empty: nobody does.
    std::filesystem::path prepare_program;
    WarmOptions warm;                        // sandboxes that wait for an owner; none unless told
    NetworkOptions network;

    [[nodiscard]] std::filesystem::path templates() const {
        return templates_dir.empty() ? data_dir / "templates" : templates_dir;
    }
};

struct Machinery {
    std::string instance;
    std::unique_ptr<engine::MicrovmEngine> engine;
    std::unique_ptr<net::HostNetwork> network;
    // Left by the previous process; to be made sandboxes of. Their slots are kept.
    std::vector<Survivor> survivors;
    // Ends all other machines that it left, and returns when they are gone. To be called once, before any machine is
    // started, where `find` was given; done already where it was not.
    [[nodiscard]] Status end_others() const;
    std::map<std::string, pid_t> keep;  // the survivors' control groups and processes
};

enum class Busy { refuse, wait };
// Takes a folder, which is made if need be, for this process alone. already_exists when another one has it.
Result<UniqueFd> lock_folder(const std::filesystem::path& folder, Busy busy);
// An id that stays the same over restarts with this folder and is different for every other.
Result<std::string> instance_of(const std::filesystem::path& folder);

// `instance` names everything that is made, `folder` holds what the VMM sees of the host; both belong to one process at
// a time. The same ones again reclaim, but for the machines that `find` names.
using FindSurvivors = std::function<std::vector<Survivor>(engine::Engine& engine, std::uint16_t instance_tag)>;
Result<Machinery> open_machinery(const std::filesystem::path& folder, const std::string& instance,
                                 const net::Ceiling& ceiling = {}, const FindSurvivors& find = {});

// The user that the machine in this slot runs as: no two machines of this host share one.
uid_t machine_uid(std::uint16_t instance_tag, std::size_t slot_number);

}  // namespace gb
