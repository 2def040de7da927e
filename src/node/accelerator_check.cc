// SPDX-License-Identifier: Apache-2.0
#include "node/accelerator_check.h"

namespace gb {

engine::AcceleratorChoice check_accelerator(Machinery& machinery, const std::filesystem::path& folder,
                                            engine::KernelSpec kernel) {
    engine::ProbeOptions probe;
    probe.kernel = std::move(kernel);
    probe.jail.uid = machine_uid(machinery.network->tag(), 4095);
    probe.jail.gid = probe.jail.uid;
    probe.jail.cgroup_name = "probe";
    probe.state_folder = folder;
    return engine::probe_accelerator(*machinery.engine, probe);
}

std::filesystem::path builder_folder(const NodeOptions& options) {
    return options.data_dir / "builder";
}

Result<BuilderMachinery> open_builder_machinery(const NodeOptions& options) {
    const std::filesystem::path folder = builder_folder(options);
    BuilderMachinery out;
    GB_TRY_ASSIGN(out.lock, lock_folder(folder, Busy::wait));
    GB_TRY_ASSIGN(const std::string instance, instance_of(folder));
    GB_TRY_ASSIGN(out.machinery, open_machinery(folder, instance));
    return out;
}

}  // namespace gb
