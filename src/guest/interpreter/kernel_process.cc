// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/kernel_process.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <thread>

#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"

extern char** environ;

namespace gb::interpreter {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstFree = 16;  // file descriptors below are for the child's own numbers

fs::path kernels_folder(const fs::path& run_dir) {
    return run_dir / "kernels";
}

// A field of proc(5) stat, counted as there, from 3 on; empty when the process is not there.
std::string stat_field(pid_t pid, int wanted) {
    auto stat = read_file(fmt::format("/proc/{}/stat", pid));
    if (!stat) return {};
    std::istringstream fields(stat->substr(stat->rfind(')') + 1));
    std::string field;
    for (int number = 3; number <= wanted && fields >> field; ++number) {
    }
    return field;
}

// With the pid it names one process for ever.
std::string start_time(pid_t pid) {
    return stat_field(pid, 22);
}

// How often this machine ended a process for want of memory, since it started.
std::uint64_t out_of_memory_kills() {
    std::istringstream lines(read_file("/proc/vmstat").value_or(""));
    std::string name;
    std::uint64_t count = 0;
    while (lines >> name >> count)
        if (name == "oom_kill") return count;
    return 0;
}

class SpawnActions {
  public:
    SpawnActions() { posix_spawn_file_actions_init(&actions_); }
    ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;

    // Numbers of ours and of the child's may overlap, so ours are moved out of the way first.
    Status give(const std::vector<std::pair<int, int>>& fds) {
        int highest = 2;
        for (const auto& [ours, theirs] : fds) {
            UniqueFd& moved = moved_.emplace_back(::fcntl(ours, F_DUPFD_CLOEXEC, kFirstFree));
            if (!moved) return fail_errno("duplicate a file descriptor");
            posix_spawn_file_actions_adddup2(&actions_, moved.get(), theirs);
            highest = std::max(highest, theirs);
        }
        // Accepted connections are not close-on-exec: a kernel that held one would keep its client waiting.
        posix_spawn_file_actions_addclosefrom_np(&actions_, highest + 1);
        return {};
    }
    posix_spawn_file_actions_t* get() { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_{};
    std::vector<UniqueFd> moved_;
};

Result<pid_t> spawn_program(const KernelCommand& command) {
    SpawnActions actions;
    posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(actions.get(), 1, "/dev/null", O_WRONLY, 0);
    std::error_code ignored;
    if (fs::is_directory(command.cwd, ignored))
        posix_spawn_file_actions_addchdir_np(actions.get(), command.cwd.c_str());
    GB_TRY(actions.give(command.fds));

    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

    std::vector<char*> argv, env;
    for (const std::string& argument : command.argv) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const std::string& variable : command.env) env.push_back(const_cast<char*>(variable.c_str()));
    for (char** variable = environ; *variable != nullptr; ++variable) env.push_back(*variable);
    env.push_back(nullptr);
    pid_t pid = -1;
    const int rc = ::posix_spawn(&pid, argv[0], actions.get(), &attr, argv.data(), env.data());
    posix_spawnattr_destroy(&attr);
    if (rc != 0) return fail_errno(rc, fmt::format("start {}", argv[0]));
    return pid;
}

}  // namespace

Result<fs::path> make_kernel_folder(const fs::path& run_dir) {
    fs::path folder = kernels_folder(run_dir) / random_id(8);
    GB_TRY(make_dirs(folder, 0700));
    return folder;
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::spawn(const KernelCommand& command) {
    auto pid = spawn_program(command);
    if (!pid) {
        (void)remove_tree(command.folder);
        return std::unexpected(pid.error());
    }
    return adopt(*pid, command.folder, {});
}

Result<std::unique_ptr<KernelProcess>> KernelProcess::adopt(pid_t pid, fs::path folder,
                                                            std::function<void()> release) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    std::unique_ptr<KernelProcess> process(new KernelProcess(pid, std::move(pidfd), std::move(folder)));
    process->release_ = std::move(release);
    if (!process->pidfd_) return fail_errno("pidfd_open");
    // For sweep_kernels of a later server.
    GB_TRY(write_file_atomic(process->folder_ / "pid", fmt::format("{} {}", pid, start_time(pid))));
    process->set_oom_score(kOomScore);
    return process;
}

KernelProcess::KernelProcess(pid_t pid, UniqueFd pidfd, fs::path folder)
    : pid_(pid), pidfd_(std::move(pidfd)), folder_(std::move(folder)), kills_before_(out_of_memory_kills()) {}

KernelProcess::~KernelProcess() {
    ::kill(-pid_, SIGKILL);
    // Nearly always immediate. A process with much memory takes longer to vanish; nobody should wait for
    // that.
    for (int tries = 0; tries < 20 && !reap(); ++tries) ::usleep(1000);
    if (release_) {
        release_();
    } else if (!status_) {
        std::thread([pid = pid_] { ::waitpid(pid, nullptr, 0); }).detach();
    }
    (void)remove_tree(folder_);
}

bool KernelProcess::reap() {
    if (status_) return true;
    if (release_) return (status_ = status_of_zombie()).has_value();
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    status_ = status;
    return true;
}

// Its parent has not waited for it yet, so what it ended with still stands in field 52.
std::optional<int> KernelProcess::status_of_zombie() const {
    const std::string state = stat_field(pid_, 3);
    if (state.empty()) return SIGKILL;  // nobody knows: the parent has gone, and it with its parent
    if (state != "Z" && state != "X") return std::nullopt;
    const std::string field = stat_field(pid_, 52);
    int status = 0;
    std::from_chars(field.data(), field.data() + field.size(), status);
    return status;
}

void KernelProcess::set_oom_score(int score) {
    if (!status_)
        (void)write_control_file(fmt::format("/proc/{}/oom_score_adj", pid_), std::to_string(score));
}

// A reaped leader's number may belong to somebody else by now; its group's number does not while members
// live.
void KernelProcess::interrupt() {
    if (!status_) ::kill(-pid_, SIGINT);
}

void KernelProcess::stop() {
    if (!status_) ::kill(pid_, SIGSTOP);
}

void KernelProcess::resume() {
    if (!status_) ::kill(pid_, SIGCONT);
}

std::string KernelProcess::describe_end() {
    if (!reap()) return "stopped answering";
    if (WIFEXITED(*status_)) return fmt::format("exited with code {}", WEXITSTATUS(*status_));
    const int signal = WTERMSIG(*status_);
    const bool out_of_memory = signal == SIGKILL && out_of_memory_kills() > kills_before_;
    return fmt::format("was killed by signal {}{}", signal,
                       out_of_memory ? " because the sandbox ran out of memory" : "");
}

std::optional<int> KernelProcess::exit_code() {
    if (!reap() || !WIFEXITED(*status_)) return std::nullopt;
    return WEXITSTATUS(*status_);
}

void sweep_kernels(const fs::path& run_dir) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(kernels_folder(run_dir), error)) {
        pid_t pid = 0;
        std::string started;
        if (auto text = read_file(entry.path() / "pid")) std::istringstream(*text) >> pid >> started;
        // The number may have been given to another process since.
        if (pid > 1 && !started.empty() && start_time(pid) == started) {
            log::warn("ending a kernel that was left behind", {{"pid", pid}});
            ::kill(-pid, SIGKILL);
        }
        (void)remove_tree(entry.path());
    }
}

}  // namespace gb::interpreter
