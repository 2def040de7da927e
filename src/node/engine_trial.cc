// SPDX-License-Identifier: Apache-2.0
#include "node/engine_trial.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/microvm/overlay.h"
#include "image/command_line.h"
#include "image/initramfs.h"
#include "image/kernel.h"
#include "net/address_block.h"
#include "node/guest_link.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kMemoryMib = 256;
constexpr std::uint64_t kDiskBytes = 1 << 20;
constexpr std::uint64_t kSomeRounds = 3;   // in which the guest changes what has to be saved
// A guest that tells of no round for so long although it has a processor is broken.
constexpr Patience kRoundLimit{std::chrono::minutes(4), std::chrono::minutes(30)};
constexpr useconds_t kTrialLookUs = 1'000;
constexpr std::size_t kFirstUser = 4080;  // of machine_uid(); no machine of this instance has a slot

template <class Number>
bool take_number(std::string_view& text, Number& out) {
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (ec != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
}

// Waits until the guest has told of a round after `round`, and that all is well.
Result<TrialRounds> wait_for_round(const engine::Machine& machine, std::uint64_t round) {
    StallLimit limit(kRoundLimit);
    const Signs signs = machine_signs(machine);
    for (;;) {
        const bool alive = machine.alive();
        const auto rounds = parse_trial_rounds(machine.console_tail());
        if (rounds && !rounds->trouble.empty())
            return fail(ErrorCode::data_loss, fmt::format("the guest's {} is not what it was", rounds->trouble));
        if (rounds && rounds->last > round) return *rounds;
        std::string console = machine.console_tail();
        if (console.size() > 200) console = console.substr(console.size() - 200);
        if (!alive)
            return fail(ErrorCode::unavailable, fmt::format("the machine ended; QEMU printed: {}; its console: {}",
                                                            machine.vmm_log(), console));
        GB_TRY(signs(limit));
        if (limit.over())
            return limit.error(fmt::format("the guest's next round (its console ends with: {})", console));
        ::usleep(kTrialLookUs);
    }
}

class Trial {
  public:
    Trial(const NodeOptions& options, const image::ProgressFn& progress) : options_(options), progress_(progress) {
        for (const char* name :
             {"kernel", "qemu", "accelerator", "boot", "capture", "restore", "pause", "resume", "fork"})
            out_.steps.push_back({.name = name, .error = {}});
    }

    EngineTrial run() {
        using Step = Result<std::string> (Trial::*)();
        constexpr Step kSteps[] = {&Trial::kernel,  &Trial::qemu,  &Trial::accelerator, &Trial::boot, &Trial::capture,
                                   &Trial::restore, &Trial::pause, &Trial::resume,      &Trial::fork};
        for (std::size_t i = 0; i < out_.steps.size(); ++i) {
            TrialStep& step = out_.steps[i];
            if (progress_) progress_({step.name, static_cast<double>(i) / std::size(kSteps), "engine"});
            const std::int64_t start = monotonic_ms();
            auto detail = (this->*kSteps[i])();
            step.ms = monotonic_ms() - start;
            step.outcome = detail ? TrialStep::Outcome::passed : TrialStep::Outcome::failed;
            if (!detail) {
                step.error = detail.error().message;
                break;
            }
            step.detail = *std::move(detail);
        }
        clean_up();
        return std::move(out_);
    }

  private:
    Result<std::string> kernel() {
        GB_TRY_ASSIGN(kernel_, image::prepare_kernel(options_.cache_dir, [this](const image::Progress& p) {
            if (progress_) progress_({p.step, p.fraction / 9, p.detail});
        }));
        out_.guest_kernel = kernel_.release;
        return kernel_.release;
    }

    Result<std::string> qemu() {
        if (::geteuid() != 0)
            return fail(ErrorCode::permission_denied, "machines are made by root: run this with sudo");
        GB_TRY_ASSIGN(lock_, lock_folder(options_.data_dir / "doctor", Busy::wait));
        GB_TRY_ASSIGN(instance_, instance_of(options_.data_dir / "doctor"));
        folder_ = options_.data_dir / "doctor/run";
        engine::MicrovmOptions engine;
        engine.data_folder = folder_;
        engine.instance = instance_;
        GB_TRY_ASSIGN(engine.cgroups, engine::detect_cgroup_layout());
        cgroups_ = engine.cgroups;
        GB_TRY(remove_tree(folder_));  // of a trial that was killed
        GB_TRY(make_dirs(folder_));
        GB_TRY_ASSIGN(engine_, engine::MicrovmEngine::create(std::move(engine)));
        GB_TRY(engine_->reclaim());
        out_.vmm_version = engine_->vmm_root().version.text();
        return out_.vmm_version;
    }

    Result<std::string> accelerator() {
        const std::vector<image::GuestFile> files{{options_.guest_dir / "glovebox-init", "glovebox-agent"}};
        GB_TRY(image::build_initramfs(kernel_, options_.guest_dir / "glovebox-init", files, initrd()));
        engine::ProbeOptions probe;
        probe.kernel = {kernel_.vmlinuz, initrd(), image::kernel_command_line({})};
        probe.jail = jail();
        probe.state_folder = folder_;
        out_.accelerator = engine::probe_accelerator(*engine_, probe);
        return std::string(engine::accelerator_name(out_.accelerator.accelerator));
    }

    Result<std::string> boot() {
        engine::MachineSpec spec = machine(engine::MemoryMapping::shared);
        image::CommandLine line{.trial = true, .extra = {}};
        if (spec.accelerator == engine::Accelerator::tcg) {
            line.processor = image::Processor::emulated;
            line.tsc_khz = image::measure_tsc_khz();
        }
        spec.kernel = {kernel_.vmlinuz, initrd(), image::kernel_command_line(line)};
        spec.disk = {folder_ / "disk.img", engine::DiskFormat::raw, {}};
        {
            GB_TRY_ASSIGN(UniqueFd disk, open_file(spec.disk.image, O_RDWR | O_CREAT | O_EXCL));
            if (::ftruncate(disk.get(), kDiskBytes) != 0) return fail_errno("make a disk");
        }
        GB_TRY_ASSIGN(machine_, engine_->boot(std::move(spec)));
        GB_TRY_ASSIGN(rounds_, wait_for_round(*machine_, 0));
        return fmt::format("{} MiB", kMemoryMib);
    }

    Result<std::string> capture() {
        GB_TRY_ASSIGN(rounds_, wait_for_round(*machine_, rounds_.last + kSomeRounds));
        GB_TRY_ASSIGN(const engine::CaptureResult captured, machine_->capture(captured_.state));
        machine_.reset();
        GB_TRY(engine::make_empty_overlay(folder_ / "empty.qcow2", kDiskBytes));
        return fmt::format("stopped for {} ms, state {} KiB", captured.stopped_for.count(), captured.state_bytes / 1024);
    }

    Result<std::string> restore() {
        GB_TRY_ASSIGN(machine_, start("one", "empty.qcow2", captured_));
        GB_TRY_ASSIGN(rounds_, wait_for_round(*machine_, rounds_.last));
        return std::string();
    }

    Result<std::string> pause() {
        GB_TRY_ASSIGN(rounds_, wait_for_round(*machine_, rounds_.last + kSomeRounds));
        GB_TRY_ASSIGN(const engine::SaveResult saved, machine_->suspend(paused_, engine::AfterSave::end, {}));
        machine_.reset();
        paused_.memory_checksum = saved.memory_checksum;
        return memory_of(saved);
    }

    Result<std::string> resume() {
        GB_TRY_ASSIGN(machine_, start("two", "one.qcow2", paused_));
        GB_TRY_ASSIGN(rounds_, wait_for_round(*machine_, rounds_.last));
        return std::string();
    }

    Result<std::string> fork() {
        const engine::SavedFiles files(folder_ / "forked.state", folder_ / "forked.delta");
        GB_TRY_ASSIGN(const engine::SaveResult saved,
                      machine_->suspend(files, engine::AfterSave::run_unsynced, [this](const engine::SaveResult&) {
                          return copy_file_sparse(folder_ / "two.qcow2", folder_ / "copy.qcow2", 0600);
                      }));
        GB_TRY_ASSIGN(std::unique_ptr<engine::Machine> copy, start("three", "copy.qcow2", files));
        GB_TRY_ASSIGN(const TrialRounds copied, wait_for_round(*copy, rounds_.last));
        GB_TRY(wait_for_round(*machine_, copied.last + kSomeRounds));  // the original goes on, too
        GB_TRY(wait_for_round(*copy, copied.last + kSomeRounds));
        return fmt::format("stopped for {} ms, {}", saved.stopped_for.count(), memory_of(saved));
    }

    [[nodiscard]] fs::path initrd() const { return folder_ / "initrd.img"; }

    static std::string memory_of(const engine::SaveResult& saved) {
        return fmt::format("{} KiB of memory", saved.memory_bytes / 1024);
    }

    engine::JailSpec jail() {
        engine::JailSpec out;
        out.uid = out.gid = machine_uid(net::instance_tag(instance_), kFirstUser + made_);
        out.cgroup_name = fmt::format("trial-{}", made_++);
        return out;
    }

    engine::MachineSpec machine(engine::MemoryMapping mapping) {
        engine::MachineSpec spec;
        spec.jail = jail();
        spec.memory_mib = kMemoryMib;
        spec.memory = {folder_ / "memory.img", mapping, "trial"};
        spec.accelerator = out_.accelerator.accelerator;
        return spec;
    }

    // A machine that goes on from `files`, on a copy of the disk `from`.
    Result<std::unique_ptr<engine::Machine>> start(const std::string& name, const std::string& from,
                                                   const engine::SavedFiles& files) {
        engine::MachineSpec spec = machine(engine::MemoryMapping::copy_on_write);
        spec.disk = {folder_ / (name + ".qcow2"), engine::DiskFormat::qcow2, folder_ / "disk.img"};
        GB_TRY(copy_file_sparse(folder_ / from, spec.disk.image, 0600));
        return engine_->restore(std::move(spec), files, engine::AfterLoad::run);
    }

    void clean_up() {
        machine_.reset();
        if (!engine_) return;
        engine_.reset();
        for (const fs::path& root : cgroups_.roots()) ::rmdir((root / "glovebox" / instance_).c_str());
        (void)remove_tree(folder_);
    }

    const NodeOptions& options_;
    const image::ProgressFn& progress_;
    EngineTrial out_;
    image::GuestKernel kernel_;
    UniqueFd lock_;
    std::string instance_;
    engine::CgroupLayout cgroups_;
    fs::path folder_ = options_.data_dir / "doctor/run";
    engine::SavedFiles captured_{folder_ / "state.bin"}, paused_{folder_ / "paused.state", folder_ / "paused.delta"};
    std::unique_ptr<engine::MicrovmEngine> engine_;
    std::unique_ptr<engine::Machine> machine_;
    TrialRounds rounds_;
    unsigned made_ = 0;
};

}  // namespace

bool EngineTrial::passed() const {
    return std::ranges::all_of(steps, [](const TrialStep& s) { return s.outcome == TrialStep::Outcome::passed; });
}

EngineTrial try_engine(const NodeOptions& options, const image::ProgressFn& progress) {
    return Trial(options, progress).run();
}

std::optional<TrialRounds> parse_trial_rounds(std::string_view console) {
    constexpr std::string_view kStart = "glovebox-trial: ";
    std::optional<TrialRounds> out;
    for (std::size_t end; (end = console.find('\n')) != std::string_view::npos; console.remove_prefix(end + 1)) {
        std::string_view line = console.substr(0, end);
        while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        const std::size_t at = line.find(kStart);
        if (at == std::string_view::npos) continue;
        line.remove_prefix(at + kStart.size());
        TrialRounds found;
        if (!take_number(line, found.last) || !take_number(line, found.guest_ms)) continue;
        if (out) found.trouble = out->trouble;
        if (found.trouble.empty() && line != "ok") found.trouble = line;
        out = found;
    }
    return out;
}

}  // namespace gb
