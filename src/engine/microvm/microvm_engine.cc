// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/microvm_engine.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/jail.h"
#include "engine/microvm/command_line.h"
#include "engine/microvm/microvm_machine.h"
#include "engine/microvm/monitor_socket.h"
#include "engine/microvm/strays.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kKeepVmmLog = 16 * 1024;
// Of a machine's descriptors; see the command line.
constexpr int kConsoleFd = 1;
constexpr int kLogFd = 2;

struct Pair {
    UniqueFd ours, theirs;
};

Result<Pair> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
    return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Connected before the VMM runs, so that it can be told everything at once.
Result<Pair> make_monitor(const fs::path& path) {
    Pair pair;
    if (!path.empty()) {
        GB_TRY_ASSIGN(pair.theirs, listen_monitor(path));
        GB_TRY_ASSIGN(pair.ours, connect_monitor(path));
        return pair;
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
    return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A file that other machines use too: the jail's user may read it and must not be able to write it.
Status check_shared_file(const fs::path& path, const char* what) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return fail_errno(fmt::format("{} {}", what, path.string()));
    if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 0022) != 0 || (st.st_mode & 0004) == 0)
        return fail(ErrorCode::failed_precondition,
                    fmt::format("{} {} must be a file of root that all may read and nobody else may write",
                                what, path.string()));
    return {};
}

Status give_file(const fs::path& path, const JailSpec& jail) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDWR | O_NOFOLLOW));
    if (::fchown(fd.get(), jail.uid, jail.gid) != 0)
        return fail_errno(fmt::format("chown {}", path.string()));
    if (::fchmod(fd.get(), 0600) != 0) return fail_errno(fmt::format("chmod {}", path.string()));
    return {};
}

Status make_memory_image(const MachineSpec& spec) {
    const fs::path& path = spec.memory.image;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
        return fail_errno(fmt::format("unlink {}", path.string()));
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW));
    if (::ftruncate(fd.get(), static_cast<off_t>(spec.memory_mib) << 20) != 0)
        return fail_errno(fmt::format("truncate {}", path.string()));
    return give_file(path, spec.jail);
}

Status check_memory_image(const MachineSpec& spec) {
    GB_TRY(check_shared_file(spec.memory.image, "memory image"));
    std::error_code ec;
    if (fs::file_size(spec.memory.image, ec) == std::uintmax_t{spec.memory_mib} << 20) return {};
    return fail(ErrorCode::failed_precondition,
                fmt::format("memory image {} is not of {} MiB", spec.memory.image.string(), spec.memory_mib));
}

Status prepare_files(const MachineSpec& spec, bool incoming) {
    if (spec.jail.uid == 0) return fail(ErrorCode::invalid_argument, "a machine does not run as root");
    if (spec.memory.mapping == MemoryMapping::shared) {
        GB_TRY(make_memory_image(spec));
    } else {
        GB_TRY(check_memory_image(spec));
    }
    GB_TRY(give_file(spec.disk.image, spec.jail));
    if (!spec.disk.backing.empty()) GB_TRY(check_shared_file(spec.disk.backing, "disk"));
    if (incoming) return {};
    GB_TRY(check_shared_file(spec.kernel.image, "kernel"));
    return spec.kernel.initrd.empty() ? Status() : check_shared_file(spec.kernel.initrd, "initrd");
}

std::vector<BindMount> mounts_of(const MachineSpec& spec, bool incoming) {
    const bool shared = spec.memory.mapping == MemoryMapping::shared;
    std::vector<BindMount> out{{spec.memory.image, kJailMemory, shared}, {spec.disk.image, kJailDisk, true}};
    if (!spec.disk.backing.empty()) out.push_back({spec.disk.backing, kJailBase});
    if (incoming) return out;
    out.push_back({spec.kernel.image, kJailKernel});
    if (!spec.kernel.initrd.empty()) out.push_back({spec.kernel.initrd, kJailInitrd});
    return out;
}

}  // namespace

Result<std::unique_ptr<MicrovmEngine>> MicrovmEngine::create(MicrovmOptions options) {
    GB_TRY_ASSIGN(VmmRoot root, prepare_vmm_root(options.data_folder / "vmm", options.files));
    return std::unique_ptr<MicrovmEngine>(new MicrovmEngine(std::move(options), std::move(root)));
}

Status MicrovmEngine::reclaim(std::vector<std::string>* reclaimed, const std::map<std::string, pid_t>& keep) {
    std::vector<std::string> names;
    std::vector<pid_t> pids;
    for (const auto& [name, pid] : keep) {
        names.push_back(name);
        pids.push_back(pid);
    }
    Status groups = reclaim_cgroups(options_.cgroups, options_.instance, reclaimed, names);
    GB_TRY(kill_stray_vmms(options_.data_folder / "vmm", pids));
    return groups;
}

CgroupLimits MicrovmEngine::limits_of(const MachineSpec& spec) const {
    CgroupLimits limits = spec.jail.limits;
    const bool emulated = spec.accelerator == Accelerator::tcg;
    if (limits.memory_mib == 0)
        limits.memory_mib =
            spec.memory_mib + options_.vmm_overhead_mib + (emulated ? options_.translation_cache_mib : 0);
    if (limits.cpu_percent == 0) limits.cpu_percent = spec.cpu_count * 100;
    // QEMU: one thread for each processor, up to 64 that wait for disk, a few more.
    if (limits.pids_max == 0) limits.pids_max = 80 + spec.cpu_count;
    return limits;
}

Result<std::unique_ptr<Machine>> MicrovmEngine::boot(MachineSpec spec) {
    return start(std::move(spec), false, {}, AfterLoad::run);
}

Result<std::unique_ptr<Machine>> MicrovmEngine::prepare(MachineSpec spec) {
    return start(std::move(spec), true, {}, AfterLoad::stay_paused);
}

Result<std::unique_ptr<Machine>> MicrovmEngine::restore(MachineSpec spec, const SavedFiles& files,
                                                        AfterLoad after) {
    if (files.memory_delta.empty()) return start(std::move(spec), true, files.state, after);
    // Pages must be back before the state is loaded, so this takes a second round trip.
    GB_TRY_ASSIGN(std::unique_ptr<Machine> machine, prepare(std::move(spec)));
    GB_TRY(machine->load(files, after));
    return machine;
}

Result<std::unique_ptr<Machine>> MicrovmEngine::start(MachineSpec spec, bool incoming, const fs::path& state,
                                                      AfterLoad after) {
    CommandLineOptions line;
    line.binary = root_.binary;
    line.incoming = incoming;
    line.readonly_backend = has_readonly_backend(root_.version);
    line.translation_cache_mib = options_.translation_cache_mib;
    JailCommand command;
    GB_TRY_ASSIGN(command.argv, qemu_command_line(spec, line));
    GB_TRY(prepare_files(spec, incoming));

    GB_TRY_ASSIGN(Pair console, make_pipe());
    GB_TRY_ASSIGN(Pair log, make_pipe());
    GB_TRY_ASSIGN(Pair monitor, make_monitor(spec.monitor));
    command.root = root_.path;
    command.env = root_.environment;
    command.mounts = mounts_of(spec, incoming);
    command.descriptors = {-1, console.theirs.get(), log.theirs.get(), monitor.theirs.get()};
    if (spec.tap) command.descriptors.push_back(spec.tap.get());
    command.devices = {"/dev/null", "/dev/urandom"};
    if (spec.accelerator == Accelerator::kvm) command.devices.emplace_back("/dev/kvm");

    GB_TRY_ASSIGN(std::unique_ptr<ConsoleTail> console_tail, consoles_.follow(std::move(console.ours)));
    GB_TRY_ASSIGN(std::unique_ptr<ConsoleTail> log_tail, consoles_.follow(std::move(log.ours), kKeepVmmLog));
    GB_TRY_ASSIGN(Cgroup cgroup, Cgroup::create(options_.cgroups, options_.instance, spec.jail.cgroup_name,
                                                limits_of(spec)));
    GB_TRY_ASSIGN(JailedProcess process, JailedProcess::start(spec.jail, command, std::move(cgroup)));
    // Their ends must be closed here: the end of the VMM is seen by the end of its streams.
    console.theirs.reset();
    log.theirs.reset();
    monitor.theirs.reset();
    spec.tap.reset();

    QmpClient client(std::move(monitor.ours), vmm_signs(process.pid()));
    auto machine = std::make_unique<MicrovmMachine>(
        MicrovmMachine::Parts{std::move(process), std::move(client), std::move(console_tail),
                              std::move(log_tail), spec.memory, spec.disk});
    GB_TRY(machine->start(incoming, state, after));
    return std::unique_ptr<Machine>(std::move(machine));
}

Status MicrovmEngine::find(const MachineSpec& spec, const ProcessTrace& trace) {
    Cgroup cgroup = Cgroup::open(options_.cgroups, options_.instance, spec.jail.cgroup_name);
    Status found = JailedProcess::find(trace, spec.jail.uid, cgroup);
    cgroup.leave();
    GB_TRY(found);
    return check_vmm(trace.pid);
}

Status MicrovmEngine::check_vmm(pid_t pid) const {
    if (runs_program(pid, root_.path / (kVmmBinary + 1))) return {};
    return fail(ErrorCode::failed_precondition, "the machine runs in another VMM than this server's");
}

Result<std::unique_ptr<Machine>> MicrovmEngine::adopt(MachineSpec spec, const ProcessTrace& trace) {
    Cgroup cgroup = Cgroup::open(options_.cgroups, options_.instance, spec.jail.cgroup_name);
    GB_TRY_ASSIGN(JailedProcess process, JailedProcess::adopt(trace, spec.jail.uid, std::move(cgroup)));
    GB_TRY(check_vmm(process.pid()));
    GB_TRY_ASSIGN(UniqueFd monitor, connect_monitor(spec.monitor));
    GB_TRY_ASSIGN(UniqueFd console, reopen_pipe(process.pid(), kConsoleFd));
    GB_TRY_ASSIGN(UniqueFd log, reopen_pipe(process.pid(), kLogFd));
    GB_TRY_ASSIGN(std::unique_ptr<ConsoleTail> console_tail, consoles_.follow(std::move(console)));
    GB_TRY_ASSIGN(std::unique_ptr<ConsoleTail> log_tail, consoles_.follow(std::move(log), kKeepVmmLog));
    QmpClient client(std::move(monitor), vmm_signs(process.pid()));
    auto machine = std::make_unique<MicrovmMachine>(
        MicrovmMachine::Parts{std::move(process), std::move(client), std::move(console_tail),
                              std::move(log_tail), spec.memory, spec.disk});
    GB_TRY(machine->take_over());
    return std::unique_ptr<Machine>(std::move(machine));
}

}  // namespace gb::engine
