// SPDX-License-Identifier: Apache-2.0
#include "node/survivors.h"

#include "base/file.h"
#include "base/log.h"
#include "net/netns.h"
#include "node/guest_link.h"
#include "node/machinery.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

Result<Survivor> find_survivor(engine::Engine& engine, const TemplateStore& templates,
                               const SandboxFolder& folder, std::uint16_t tag) {
    GB_TRY_ASSIGN(const std::string text, read_file(folder.machine()));
    GB_TRY_ASSIGN(MachineRecord record, parse_record(text));
    if (record.id != folder.path().filename() || !is_sandbox_name(record.id))
        return fail(ErrorCode::data_loss, "the record is of another sandbox's machine");
    auto found = templates.find_build(record.from.image_id());
    StoredTemplate from{record.from, base_of(folder, found ? found->folder : fs::path())};
    Survivor out{std::move(record), std::move(from)};
    GB_TRY(engine.find(survivor_spec(folder, out, tag), out.record.process));
    GB_TRY_ASSIGN(const UniqueFd netns, net::netns_of(out.record.process.pid));
    GB_TRY_ASSIGN(const std::uint64_t id, net::netns_id(netns.get()));
    if (id != out.record.netns)
        return fail(ErrorCode::failed_precondition, "the machine is not in its network namespace");
    return out;
}

}  // namespace

engine::MachineSpec sandbox_machine_spec(const SandboxFolder& folder, const StoredTemplate& from,
                                         std::uint16_t tag, std::size_t slot) {
    const Manifest& manifest = from.manifest;
    engine::MachineSpec machine;
    machine.jail.uid = machine.jail.gid = machine_uid(tag, slot);
    machine.jail.cgroup_name = folder.path().filename();
    machine.cpu_count = static_cast<unsigned>(manifest.info.cpu_count);
    machine.memory_mib = static_cast<unsigned>(manifest.info.memory_mib);
    machine.disk = {folder.disk(), engine::DiskFormat::qcow2, from.disk()};
    machine.memory = {from.memory(), engine::MemoryMapping::copy_on_write, manifest.image_id()};
    machine.mac = guest_mac();
    machine.monitor = folder.monitor();
    machine.accelerator = manifest.accelerator;
    return machine;
}

engine::MachineSpec survivor_spec(const SandboxFolder& folder, const Survivor& survivor, std::uint16_t tag) {
    engine::MachineSpec out = sandbox_machine_spec(folder, survivor.from, tag, survivor.record.slot);
    out.jail.cgroup_name = survivor.record.cgroup_name();
    return out;
}

std::vector<Survivor> find_survivors(engine::Engine& engine, const TemplateStore& templates,
                                     const fs::path& sandboxes, std::uint16_t tag) {
    std::vector<Survivor> out;
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(sandboxes, ec)) {
        const SandboxFolder folder(entry.path());
        if (read_paused(folder)) continue;
        auto survivor = find_survivor(engine, templates, folder, tag);
        if (survivor) {
            out.push_back(*std::move(survivor));
        } else if (survivor.error().code != ErrorCode::not_found) {
            log::warn("a machine of the previous run cannot be taken over and ends",
                      {{"sandbox", entry.path().filename().string()}, {"error", survivor.error().message}});
        }
    }
    return out;
}

}  // namespace gb
