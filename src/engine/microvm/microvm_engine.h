// SPDX-License-Identifier: Apache-2.0
// The microVM engine: every machine is a QEMU process of machine type `microvm` in a jail of its own.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cgroup.h"
#include "engine/console.h"
#include "engine/engine.h"
#include "engine/microvm/vmm_root.h"

namespace gb::engine {

struct MicrovmOptions {
    std::filesystem::path data_folder;  // the VMM root is kept in its subfolder vmm
    std::string instance = "default";   // of the server: names its control groups
    CgroupLayout cgroups;
    VmmFiles files;
    unsigned translation_cache_mib = 128;  // emulation only, each machine
    unsigned vmm_overhead_mib = 192;       // beside the guest's memory and the translation cache
};

class MicrovmEngine final : public Engine {
  public:
    static Result<std::unique_ptr<MicrovmEngine>> create(MicrovmOptions options);

    Result<std::unique_ptr<Machine>> boot(MachineSpec spec) override;
    Result<std::unique_ptr<Machine>> prepare(MachineSpec spec) override;
    Result<std::unique_ptr<Machine>> restore(MachineSpec spec, const SavedFiles& files,
                                             AfterLoad after) override;

    Result<std::unique_ptr<Machine>> adopt(MachineSpec spec, const ProcessTrace& trace) override;
    [[nodiscard]] Status find(const MachineSpec& spec, const ProcessTrace& trace) override;

    // For start-up: ends what an earlier server of this instance left running, but for the machines in `keep`
    // (control group and process), which were adopted. Names (of control groups) go to `reclaimed`.
    Status reclaim(std::vector<std::string>* reclaimed = nullptr,
                   const std::map<std::string, pid_t>& keep = {});

    [[nodiscard]] const VmmRoot& vmm_root() const { return root_; }
    // The specification with the engine's choices in the place of zeroes.
    [[nodiscard]] CgroupLimits limits_of(const MachineSpec& spec) const;

  private:
    MicrovmEngine(MicrovmOptions options, VmmRoot root)
        : options_(std::move(options)), root_(std::move(root)) {}
    [[nodiscard]] Status check_vmm(pid_t pid) const;
    Result<std::unique_ptr<Machine>> start(MachineSpec spec, bool incoming,
                                           const std::filesystem::path& state, AfterLoad after);

    MicrovmOptions options_;
    VmmRoot root_;
    ConsoleReader consoles_;
};

}  // namespace gb::engine
