#include "guest/interpreter/kernel_process.h"

#include <charconv>
#include <thread>
#include <vector>

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

constexpr std::string_view kConnectionFile = "connection.json";
constexpr int kOomScore = 300;  // memory pressure ends a kernel before it ends the agent or this server

fs::path kernels_folder(const fs::path& run_dir) {
    return run_dir / "kernels";
}

Result<pid_t> spawn_python(const std::vector<std::string>& argv, const std::string& cwd) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    // What code prints travels as messages; only the kernel's own greeting goes here. Its complaints are
    // logged.
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    // Accepted connections are not close-on-exec: a kernel that held one would keep its client waiting.
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    std::error_code ignored;
    if (fs::is_directory(cwd, ignored)) posix_spawn_file_actions_addchdir_np(&actions, cwd.c_str());

    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

    std::vector<char*> pointers;
    for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    std::string quiet_debugger = "PYDEVD_DISABLE_FILE_VALIDATION=1";
    std::vector<char*> env{quiet_debugger.data()};
    for (char** variable = environ; *variable != nullptr; ++variable) env.push_back(*variable);
    env.push_back(nullptr);
    pid_t pid = -1;
    const int rc = ::posix_spawn(&pid, argv[0].c_str(), &actions, &attr, pointers.data(), env.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc != 0) return fail_errno(rc, fmt::format("start {}", argv[0]));
    return pid;
}

}  // namespace

Result<std::unique_ptr<KernelProcess>> KernelProcess::spawn(const KernelOptions& options) {
    const fs::path folder = kernels_folder(options.run_dir) / random_id(8);
    GB_TRY(make_dirs(folder, 0700));
    Connection connection{.folder = folder.string(), .key = random_hex(32)};
    const fs::path file = folder / kConnectionFile;
    GB_TRY(write_file_atomic(file, connection_file(connection), 0600));

    GB_TRY_ASSIGN(pid_t pid,
                  spawn_python({options.python, "-m", "ipykernel_launcher", "-f", file.string(),
                                "--config=" + (options.scripts / "ipython_kernel_config.py").string()},
                               options.cwd));
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    std::unique_ptr<KernelProcess> process(
        new KernelProcess(pid, std::move(pidfd), std::move(connection), folder));
    if (!process->pidfd_) return fail_errno("pidfd_open");
    // For sweep_kernels of a later server.
    GB_TRY(write_file_atomic(folder / "pid", std::to_string(pid)));
    (void)write_control_file(fmt::format("/proc/{}/oom_score_adj", pid), std::to_string(kOomScore));
    return process;
}

KernelProcess::KernelProcess(pid_t pid, UniqueFd pidfd, Connection connection, fs::path folder)
    : pid_(pid), pidfd_(std::move(pidfd)), connection_(std::move(connection)), folder_(std::move(folder)) {}

KernelProcess::~KernelProcess() {
    ::kill(-pid_, SIGKILL);
    // Nearly always immediate. A process with much memory takes longer to vanish; nobody should wait for
    // that.
    for (int tries = 0; tries < 20 && !reap(); ++tries) ::usleep(1000);
    if (!status_) std::thread([pid = pid_] { ::waitpid(pid, nullptr, 0); }).detach();
    (void)remove_tree(folder_);
}

bool KernelProcess::reap() {
    if (status_) return true;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    status_ = status;
    return true;
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
    return fmt::format("was killed by signal {}{}", signal,
                       signal == SIGKILL ? ", possibly because the sandbox ran out of memory" : "");
}

void sweep_kernels(const fs::path& run_dir) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(kernels_folder(run_dir), error)) {
        pid_t pid = 0;
        auto text = read_file(entry.path() / "pid");
        if (text) std::from_chars(text->data(), text->data() + text->size(), pid);
        // The number may have been given to another process: believe it only with the kernel's own command
        // line.
        auto cmdline = pid > 1 ? read_file(fmt::format("/proc/{}/cmdline", pid)) : Result<std::string>();
        const std::string file = (entry.path() / kConnectionFile).string();
        if (cmdline && cmdline->find(file) != std::string::npos) {
            log::warn("ending a kernel that was left behind", {{"pid", pid}});
            ::kill(-pid, SIGKILL);
        }
        (void)remove_tree(entry.path());
    }
}

}  // namespace gb::interpreter
