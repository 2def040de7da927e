#include "node/machinery.h"

#include <fmt/format.h>

#include "base/log.h"

namespace gb {

Result<Machinery> open_machinery(const NodeOptions& options, const std::string& instance) {
    Machinery out;
    out.instance = instance;
    GB_TRY_ASSIGN(out.cgroups, engine::detect_cgroup_layout());
    // Processes first: a machine that still runs holds its network namespace, and with it its devices.
    std::vector<std::string> groups;
    if (Status status = engine::reclaim_cgroups(out.cgroups, instance, &groups); !status)
        return std::unexpected(status.error().with("reclaim what the previous run left"));
    GB_TRY_ASSIGN(net::Reclaimed network, net::HostNetwork::reclaim(instance));
    if (!groups.empty() || network.tables + network.links + network.routes > 0)
        log::warn("reclaimed what the previous run left", {{"machines", groups.size()},
                                                           {"tables", network.tables},
                                                           {"links", network.links},
                                                           {"routes", network.routes}});
    net::HostNetworkOptions network_options;
    network_options.instance = instance;
    GB_TRY_ASSIGN(out.network, net::HostNetwork::create(std::move(network_options)));
    engine::MicrovmOptions engine_options;
    engine_options.data_folder = options.data_dir;
    engine_options.instance = instance;
    engine_options.cgroups = out.cgroups;
    GB_TRY_ASSIGN(out.engine, engine::MicrovmEngine::create(std::move(engine_options)));
    return out;
}

uid_t machine_uid(std::uint16_t instance_tag, std::size_t slot_number) {
    constexpr uid_t kFirst = 1'000'000'000;  // far from people and from the ranges that container tools take
    return kFirst + uid_t{instance_tag} * 4096 + static_cast<uid_t>(slot_number);
}

}  // namespace gb
