// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/spawn.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace gb::agent {
namespace {

enum class Step : std::uint32_t { prepare, terminal, credentials, cwd, exec };

struct Report {
    std::uint32_t step;
    std::int32_t error;
};
static_assert(sizeof(Report) == kReportSize);

// Everything the child needs, laid out before the fork: after it only system calls are allowed, because
// another thread may have held the allocator's lock at that moment.
struct Plan {
    const SpawnRequest& request;
    std::vector<char*> argv;  // two free places in front, for the shell of a script without "#!"
    std::vector<char*> env;
    std::vector<std::string> files;  // to try in order
    char oom_score[16] = "";
    int report_fd = -1;
};

std::vector<std::string> candidates(const std::string& program, std::string_view search_path) {
    if (program.find('/') != std::string::npos) return {program};
    std::vector<std::string> out;
    while (true) {
        const std::size_t colon = search_path.find(':');
        const std::string_view folder = search_path.substr(0, colon);
        out.push_back(folder.empty() ? "./" + program : std::string(folder) + "/" + program);
        if (colon == std::string_view::npos) return out;
        search_path.remove_prefix(colon + 1);
    }
}

[[noreturn]] void give_up(const Plan& plan, Step step) {
    const Report report{static_cast<std::uint32_t>(step), errno};
    [[maybe_unused]] ssize_t n = ::write(plan.report_fd, &report, sizeof report);
    ::_exit(127);
}

void reset_signals() {
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < 32; ++signal) ::sigaction(signal, &standard, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Puts the three ends where they belong, whatever their numbers are now, and marks all others to be closed.
void set_descriptors(const Plan& plan) {
    const SpawnRequest& r = plan.request;
    int from[3] = {r.stdin_fd, r.stdout_fd, r.stderr_fd};
    for (int& fd : from)
        if (fd < 3 && (fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0) give_up(plan, Step::prepare);
    for (int i = 0; i < 3; ++i)
        if (::dup2(from[i], i) < 0) give_up(plan, Step::prepare);
    // Sockets that the server accepted are not marked close-on-exec.
    if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        for (int fd = 3; fd < 4096; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void set_priorities(const Plan& plan) {
    // Best effort: without these the program still runs.
    if (plan.oom_score[0] != '\0') {
        const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            [[maybe_unused]] ssize_t n = ::write(fd, plan.oom_score, std::strlen(plan.oom_score));
            ::close(fd);
        }
    }
    if (plan.request.reset_nice) ::setpriority(PRIO_PROCESS, 0, 0);
}

// Raw system calls: glibc's wrappers would try to tell threads that do not exist in the child.
void set_credentials(const Plan& plan) {
    const SpawnRequest& r = plan.request;
    if (::syscall(SYS_setgroups, r.groups.size(), r.groups.data()) != 0 ||
        ::syscall(SYS_setresgid, r.gid, r.gid, r.gid) != 0 ||
        ::syscall(SYS_setresuid, r.uid, r.uid, r.uid) != 0)
        give_up(plan, Step::credentials);
}

[[noreturn]] void run_child(const Plan& plan) {
    reset_signals();
    ::setsid();
    if (plan.request.controlling_terminal && ::ioctl(plan.request.stdin_fd, TIOCSCTTY, 0) != 0)
        give_up(plan, Step::terminal);
    set_priorities(plan);
    set_descriptors(plan);
    ::umask(022);
    if (plan.request.set_credentials) set_credentials(plan);
    if (::chdir(plan.request.cwd.c_str()) != 0)
        give_up(plan, Step::cwd);  // as the user: it may not be allowed to

    char** argv = const_cast<char**>(plan.argv.data()) + 1;
    int refused = ENOENT;
    for (const std::string& file : plan.files) {
        ::execve(file.c_str(), argv, plan.env.data());
        if (errno == ENOEXEC) {  // a script without "#!" is one of the shell, as for execvp(3)
            char** script = const_cast<char**>(plan.argv.data());
            script[0] = const_cast<char*>("/bin/sh");
            script[1] = const_cast<char*>(file.c_str());
            ::execve(script[0], script, plan.env.data());
        }
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) give_up(plan, Step::exec);
        if (errno == EACCES) refused = EACCES;
    }
    errno = refused;
    give_up(plan, Step::exec);
}

// Like fork(2), and straight into the cgroup: moving a process that runs already waits for an RCU grace
// period of several milliseconds.
pid_t fork_into(int cgroup_fd) {
    clone_args args{};
    args.exit_signal = SIGCHLD;
    if (cgroup_fd >= 0) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
    }
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
    if (pid >= 0 || errno == EAGAIN || errno == ENOMEM) return pid;
    return ::fork();  // an older kernel, gVisor, or a cgroup that takes no processes
}

}  // namespace

Result<Spawned> spawn(const SpawnRequest& request) {
    Plan plan{request, {}, {}, candidates(request.program, request.search_path)};
    plan.argv.push_back(nullptr);
    plan.argv.push_back(const_cast<char*>(request.program.c_str()));
    for (const std::string& arg : request.args) plan.argv.push_back(const_cast<char*>(arg.c_str()));
    plan.argv.push_back(nullptr);
    for (const std::string& item : request.env) plan.env.push_back(const_cast<char*>(item.c_str()));
    plan.env.push_back(nullptr);
    if (request.oom_score_adj)
        *fmt::format_to_n(plan.oom_score, sizeof plan.oom_score - 1, "{}", *request.oom_score_adj).out = '\0';

    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) return fail_errno("pipe");
    Spawned spawned{-1, UniqueFd(report[0])};
    UniqueFd report_end(report[1]);
    // The child must not run with number 0, 1 or 2 for its report: those become its standard descriptors.
    if (report_end.get() < 3) {
        const int moved = ::fcntl(report_end.get(), F_DUPFD_CLOEXEC, 3);
        if (moved < 0) return fail_errno("duplicate a descriptor");
        report_end.reset(moved);
    }
    plan.report_fd = report_end.get();

    // A signal that arrives between the fork and the reset would run the agent's handler in the child.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    spawned.pid = fork_into(request.cgroup_fd);
    const int error = errno;
    if (spawned.pid == 0) run_child(plan);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (spawned.pid < 0)
        return fail_errno(error, fmt::format("error starting process '{}'", request.program));
    return spawned;
}

Error spawn_failure(std::string_view bytes, const SpawnRequest& request) {
    Report report{0, EIO};
    if (bytes.size() == sizeof report) std::memcpy(&report, bytes.data(), sizeof report);
    const std::string what = fmt::format("error starting process '{}'", request.program);
    switch (static_cast<Step>(report.step)) {
        case Step::prepare:
        case Step::terminal:
            return Error::from_errno(report.error, what);
        case Step::credentials:
            return Error::from_errno(report.error, fmt::format("{}: become user {}", what, request.uid));
        case Step::cwd:
            return Error::from_errno(report.error, fmt::format("cwd '{}'", request.cwd));
        case Step::exec:
            break;
    }
    if (report.error == E2BIG)
        return {ErrorCode::invalid_argument,
                what + ": the arguments and the environment are too long (one may have 128 KiB, all 2 MiB)"};
    return Error::from_errno(report.error, what);
}

}  // namespace gb::agent
