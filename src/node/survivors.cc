// SPDX-License-Identifier: Apache-2.0
#include "node/survivors.h"

#include "base/file.h"
#include "base/log.h"
#include "node/guest_link.h"
#include "node/machinery.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

Result<Survivor> adopt_machine(engine::Engine& engine, const TemplateStore& templates,
                               const SandboxFolder& folder, std::uint16_t tag) {
    GB_TRY_ASSIGN(const std::string text, read_file(folder.machine()));
    GB_TRY_ASSIGN(MachineRecord record, parse_record(text));
    if (record.id != folder.path().filename() || !is_sandbox_name(record.id))
        return fail(ErrorCode::data_loss, "the record is of another sandbox's machine");
    auto found = templates.find_build(record.from.image_id());
    StoredTemplate from{record.from, base_of(folder, found ? found->folder : fs::path())};
    engine::MachineSpec spec = sandbox_machine_spec(folder, from, tag, record.slot);
    spec.jail.cgroup_name = record.cgroup_name();
    GB_TRY_ASSIGN(std::unique_ptr<engine::Machine> machine, engine.adopt(std::move(spec), record.process));
    return Survivor(std::move(record), std::move(from), std::move(machine));
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

std::vector<Survivor> adopt_machines(engine::Engine& engine, const TemplateStore& templates,
                                     const fs::path& sandboxes, std::uint16_t tag) {
    std::vector<Survivor> out;
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(sandboxes, ec)) {
        const SandboxFolder folder(entry.path());
        if (read_paused(folder)) continue;
        auto survivor = adopt_machine(engine, templates, folder, tag);
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
