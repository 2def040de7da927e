// SPDX-License-Identifier: Apache-2.0
#include "engine/jail.h"

#include <atomic>
#include <charconv>
#include <mutex>

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/jail_child.h"
#include "engine/process_facts.h"

namespace gb::engine {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& strings) {
    std::vector<const char*> out;
    for (const std::string& s : strings) out.push_back(s.c_str());
    out.push_back(nullptr);
    return out;
}

unsigned long mount_flags(const BindMount& mount) {
    return MS_NOSUID | MS_NOEXEC | MS_NODEV | (mount.writable ? 0UL : MS_RDONLY);
}

Status check(const JailSpec& spec, const JailCommand& command) {
    if (spec.uid == 0 || spec.gid == 0)
        return fail(ErrorCode::invalid_argument, "a jail does not run as root");
    if (command.argv.empty() || !command.root.is_absolute())
        return fail(ErrorCode::invalid_argument, "a jail needs a program and an absolute root");
    if (command.descriptors.size() < 3 || command.descriptors.size() > kMaxChildDescriptors)
        return fail(ErrorCode::invalid_argument, "a jail takes 3 to 16 descriptors");
    for (const BindMount& mount : command.mounts)
        if (!mount.source.is_absolute() || !mount.target.starts_with('/') ||
            mount.target.find("..") != std::string::npos)
            return fail(ErrorCode::invalid_argument, fmt::format("not a mount: {}", mount.target));
    return {};
}

}  // namespace

struct JailedProcess::State {
    pid_t pid = -1;
    UniqueFd pidfd;
    Cgroup cgroup;
    std::mutex mutex;  // of all that follows and of the group's removal
    bool left = false;
    std::optional<ExitStatus> ended;
    CgroupUsage last_usage;  // of the group that is gone

    // Reaps when the process has ended. Never blocks.
    bool reap() {
        if (ended) return true;
        siginfo_t info{};
        if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info,
                     WEXITED | WNOHANG | __WALL) != 0) {
            // Not our child, or reaped by somebody else: then the descriptor alone says whether it has ended.
            pollfd end{pidfd.get(), POLLIN, 0};
            if (errno != ECHILD || ::poll(&end, 1, 0) != 1) return false;
            ended = ExitStatus{.known = false};
            return true;
        }
        if (info.si_pid == 0) return false;
        ended = info.si_code == CLD_EXITED ? ExitStatus{info.si_status, 0} : ExitStatus{0, info.si_status};
        return true;
    }
};

Result<JailedProcess> JailedProcess::start(const JailSpec& spec, const JailCommand& command, Cgroup cgroup) {
    GB_TRY(check(spec, command));
    GB_TRY_ASSIGN(UniqueFd null, open_file("/dev/null", O_RDWR));

    std::vector<int> descriptors;
    for (int fd : command.descriptors) descriptors.push_back(fd < 0 ? null.get() : fd);
    std::vector<ChildMount> mounts;
    for (const BindMount& mount : command.mounts)
        mounts.push_back({mount.source.c_str(), mount.target.c_str() + 1, mount_flags(mount)});
    std::vector<std::string> device_paths;
    std::vector<ChildDevice> devices;
    for (const std::filesystem::path& path : command.devices) {
        struct stat st{};
        if (::stat(path.c_str(), &st) != 0 || !S_ISCHR(st.st_mode))
            return fail(ErrorCode::not_found, fmt::format("{} is not a device", path.string()));
        device_paths.push_back("dev/" + path.filename().string());
        devices.push_back({nullptr, st.st_rdev});
    }
    for (std::size_t i = 0; i < devices.size(); ++i) devices[i].path = device_paths[i].c_str();
    std::vector<const char*> argv = pointers(command.argv);
    std::vector<const char*> env = pointers(command.env);

    GB_TRY_ASSIGN(UniqueFd birth_folder, cgroup.birth_folder());
    ChildPlan plan{};
    plan.cgroup_folder = birth_folder.get();
    plan.netns_fd = spec.netns_fd;
    plan.root = command.root.c_str();
    plan.mounts = mounts.data();
    plan.mount_count = mounts.size();
    plan.devices = devices.data();
    plan.device_count = devices.size();
    plan.descriptors = descriptors.data();
    plan.descriptor_count = descriptors.size();
    plan.open_files_max = command.open_files_max;
    plan.end_with_parent = spec.end_with_starter;
    plan.uid = spec.uid;
    plan.gid = spec.gid;
    plan.argv = argv.data();
    plan.env = env.data();

    auto state = std::make_unique<State>();
    state->cgroup = std::move(cgroup);
    int pidfd = -1;
    state->pid = clone_into_jail(plan, pidfd);
    if (state->pid < 0) return fail_errno(-state->pid, "clone into a jail");
    state->pidfd.reset(pidfd);
    JailedProcess process(std::move(state));
    if (plan.failed_step == JailStep::none) {
        if (!birth_folder) GB_TRY(process.state_->cgroup.attach(process.pid()));
        // When the host itself runs out of memory, a sandbox goes before the server does.
        (void)write_control_file(fmt::format("/proc/{}/oom_score_adj", process.pid()), "500");
        return process;
    }

    std::string what = jail_step_name(plan.failed_step);
    if (plan.failed_step == JailStep::bind) {
        const BindMount& mount = command.mounts[plan.failed_mount];
        what += fmt::format(" {} at {}", mount.source.string(), mount.target);
    } else if (plan.failed_step == JailStep::exec) {
        what += " " + command.argv[0];
    }
    (void)process.kill();
    return fail_errno(plan.failed_errno, "jail: " + what);
}

Result<std::unique_ptr<JailedProcess::State>> JailedProcess::identify(const ProcessTrace& trace, uid_t uid,
                                                                     const Cgroup& cgroup) {
    auto state = std::make_unique<State>();
    state->pid = trace.pid;
    if (trace.pid <= 1) return fail(ErrorCode::invalid_argument, "not a process that could be taken over");
    state->pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, trace.pid, 0)));
    if (!state->pidfd) return fail_errno(fmt::format("open process {}", trace.pid));
    GB_TRY_ASSIGN(ProcessFacts facts, read_process_facts(trace.pid));
    const bool meant =
        facts.start_ticks == trace.start_ticks && facts.uid == uid && cgroup.contains(trace.pid);
    // What was read is of the descriptor's process only if that has not ended.
    if (state->reap()) return fail(ErrorCode::not_found, fmt::format("process {} has ended", trace.pid));
    if (!meant)
        return fail(ErrorCode::failed_precondition, fmt::format("process {} is another one now", trace.pid));
    return state;
}

Status JailedProcess::find(const ProcessTrace& trace, uid_t uid, const Cgroup& cgroup) {
    GB_TRY(identify(trace, uid, cgroup));
    return {};
}

Result<JailedProcess> JailedProcess::adopt(const ProcessTrace& trace, uid_t uid, Cgroup cgroup) {
    GB_TRY_ASSIGN(std::unique_ptr<State> state, identify(trace, uid, cgroup));
    state->cgroup = std::move(cgroup);
    return JailedProcess(std::move(state));
}

JailedProcess::JailedProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
JailedProcess::JailedProcess(JailedProcess&&) noexcept = default;
JailedProcess& JailedProcess::operator=(JailedProcess&& other) noexcept {
    if (this != &other) {
        if (state_) (void)kill();
        state_ = std::move(other.state_);
    }
    return *this;
}

JailedProcess::~JailedProcess() {
    if (state_) (void)kill();
}

pid_t JailedProcess::pid() const {
    return state_->pid;
}

int JailedProcess::pidfd() const {
    return state_->pidfd.get();
}

Result<ProcessTrace> JailedProcess::trace() const {
    GB_TRY_ASSIGN(ProcessFacts facts, read_process_facts(state_->pid));
    return ProcessTrace{state_->pid, facts.start_ticks};
}

bool JailedProcess::alive() const {
    std::lock_guard lock(state_->mutex);
    return !state_->reap();
}

std::optional<ExitStatus> JailedProcess::wait(std::chrono::milliseconds limit) {
    const std::int64_t deadline = monotonic_ms() + limit.count();
    for (;;) {
        {
            std::lock_guard lock(state_->mutex);
            if (state_->reap()) return state_->ended;
        }
        const std::int64_t left = deadline - monotonic_ms();
        if (left <= 0) return std::nullopt;
        pollfd fd{state_->pidfd.get(), POLLIN, 0};
        ::poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    }
}

void JailedProcess::leave() {
    std::lock_guard lock(state_->mutex);
    state_->left = true;
    state_->cgroup.leave();
}

Status JailedProcess::kill() {
    {
        std::lock_guard lock(state_->mutex);
        if (state_->left) return {};
    }
    // Process 1 of a pid namespace takes all others with it, and is waited for by the kernel until they are
    // gone.
    ::syscall(SYS_pidfd_send_signal, state_->pidfd.get(), SIGKILL, nullptr, 0);
    // Much memory, or a disk that does not answer, takes its time; there is nothing else to do but wait.
    if (!wait(std::chrono::minutes(2)))
        return fail(ErrorCode::deadline_exceeded, fmt::format("process {} does not end", state_->pid));
    std::lock_guard lock(state_->mutex);
    if (state_->cgroup.valid()) state_->last_usage.cpu_usec = state_->cgroup.usage().cpu_usec;
    return state_->cgroup.remove();
}

Status JailedProcess::set_cpu_weight(unsigned weight) {
    std::lock_guard lock(state_->mutex);
    return state_->cgroup.valid() ? state_->cgroup.set_cpu_weight(weight) : Status();
}

CgroupUsage JailedProcess::usage() const {
    std::lock_guard lock(state_->mutex);
    return state_->cgroup.valid() ? state_->cgroup.usage() : state_->last_usage;
}

Result<std::uint64_t> JailedProcess::private_bytes() const {
    GB_TRY_ASSIGN(std::string text, read_file(fmt::format("/proc/{}/smaps_rollup", state_->pid)));
    constexpr std::string_view kKey = "\nAnonymous:";
    std::size_t at = text.find(kKey);
    if (at == std::string::npos) return fail(ErrorCode::not_found, "the process has no memory any more");
    at = text.find_first_not_of(' ', at + kKey.size());
    std::uint64_t kib = 0;
    if (at != std::string::npos) std::from_chars(text.data() + at, text.data() + text.size(), kib);
    return kib * 1024;
}

}  // namespace gb::engine
