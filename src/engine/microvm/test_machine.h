// SPDX-License-Identifier: Apache-2.0
// What microvm_test and restore_bench share: a place for files and specifications of small machines.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "engine/microvm/microvm_engine.h"
#include "engine/microvm/overlay.h"

namespace gb::engine::testing {

// Emulated guests calibrate nothing: the host's TSC frequency is told to them, and that they can rely on it, as a template's
// kernel is told: on a loaded host two processors would find their counters apart, and time would be counted in ticks.
inline std::string emulated_command_line() {
    return "console=ttyS0 quiet reboot=t panic=-1 mitigations=off tsc_early_khz=2300000 no_timer_check "
           "lpj=4600000 tsc=reliable";
}

class Bench {
  public:
    static Result<std::unique_ptr<Bench>> create(unsigned memory_mib = 256, unsigned weight_factor = 1) {
        const char* kernel = ::getenv("GLOVEBOX_TEST_KERNEL");
        const char* initrd = ::getenv("GLOVEBOX_TEST_INITRD");
        if (kernel == nullptr || initrd == nullptr)
            return fail(ErrorCode::failed_precondition,
                        "GLOVEBOX_TEST_KERNEL and GLOVEBOX_TEST_INITRD (testdata/make-initrd) are not set");
        if (::geteuid() != 0) return fail(ErrorCode::failed_precondition, "machines are made by root");
        auto bench = std::unique_ptr<Bench>(new Bench);
        bench->kernel_ = {kernel, initrd, emulated_command_line()};
        bench->memory_mib_ = memory_mib;
        bench->folder_ = std::filesystem::temp_directory_path() / ("glovebox-engine-" + random_id(8));
        bench->options_.data_folder = bench->folder_;
        bench->options_.instance = "test-" + random_id(8);
        GB_TRY_ASSIGN(bench->options_.cgroups, detect_cgroup_layout());
        bench->options_.cgroups.top_weight_percent *= weight_factor;
        GB_TRY(make_dirs(bench->folder_));
        GB_TRY_ASSIGN(bench->engine_, MicrovmEngine::create(bench->options_));
        GB_TRY(bench->make_base());
        return bench;
    }

    ~Bench() {
        engine_.reset();
        (void)reclaim_cgroups(options_.cgroups, options_.instance);
        for (const auto& root : options_.cgroups.roots())
            ::rmdir((root / "glovebox" / options_.instance).c_str());
        (void)remove_tree(folder_);
    }

    MicrovmEngine& engine() { return *engine_; }
    const MicrovmOptions& options() const { return options_; }
    std::filesystem::path file(std::string_view name) const { return folder_ / name; }
    std::filesystem::path state() const { return folder_ / "state.bin"; }
    const KernelSpec& kernel() const { return kernel_; }

    JailSpec jail() {
        const unsigned number = next_++;  // once: several threads ask
        JailSpec jail;
        jail.uid = jail.gid = 700'000 + number;
        jail.cgroup_name = fmt::format("m{}", number);
        return jail;
    }

    // A machine that can be captured: raw disk, shared memory.
    MachineSpec template_spec() {
        MachineSpec spec;
        spec.jail = jail();
        spec.memory_mib = memory_mib_;
        spec.kernel = kernel_;
        spec.memory = {folder_ / "memory.img", MemoryMapping::shared};
        spec.disk = overlay("template.qcow2");
        return spec;
    }

    // A machine for the captured state, on a disk of its own that holds `token`.
    MachineSpec sandbox_spec(const std::string& name) {
        MachineSpec spec;
        spec.jail = jail();
        spec.memory_mib = memory_mib_;
        spec.memory = {folder_ / "memory.img", MemoryMapping::copy_on_write};
        spec.monitor = folder_ / (name + ".monitor");
        spec.disk = overlay(name + ".qcow2");
        return spec;
    }

    DiskSpec overlay(const std::string& name) {
        const auto path = folder_ / name;
        (void)copy_file_sparse(folder_ / "empty.qcow2", path, 0600);
        return {path, DiskFormat::qcow2, folder_ / "base.img"};
    }

  private:
    Bench() = default;
    Status make_base() {
        GB_TRY(write_file_atomic(folder_ / "base.img", std::string(1 << 20, '\0'), 0444));
        return make_empty_overlay(folder_ / "empty.qcow2", 1 << 20);
    }

    std::filesystem::path folder_;
    MicrovmOptions options_;
    KernelSpec kernel_;
    unsigned memory_mib_ = 256;
    std::atomic<unsigned> next_{1};
    std::unique_ptr<MicrovmEngine> engine_;
};

}  // namespace gb::engine::testing
