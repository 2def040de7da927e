// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/supervisor.h"

#include <algorithm>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

namespace gb::interpreter {
namespace {

constexpr int kFirstPauseMs = 100;
constexpr int kLongestPauseMs = 5'000;
constexpr int kGoodRunMs = 30'000;  // a child that lived this long starts the pauses afresh

sigset_t watched_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, signal);
    return set;
}

pid_t start_child(const std::vector<std::string>& argv, const sigset_t& original_mask) {
    std::vector<char*> pointers;
    for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    // A child without its supervisor would hold the port against the next one.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::sigprocmask(SIG_SETMASK, &original_mask, nullptr);
    ::execv("/proc/self/exe", pointers.data());
    ::_exit(127);
}

// Waits until a signal arrives or `ms` have passed; 0 for the latter.
int wait_signal(const sigset_t& set, int ms) {
    const timespec limit{ms / 1000, (ms % 1000) * 1'000'000L};
    const int signal = ms < 0 ? ::sigwaitinfo(&set, nullptr) : ::sigtimedwait(&set, nullptr, &limit);
    return std::max(signal, 0);
}

// Reaps whoever ended; true when `child` was among them.
bool reap(pid_t child, int& status) {
    bool ended = false;
    int one = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &one, WNOHANG)) > 0;) {
        if (pid != child) continue;
        ended = true;
        status = one;
    }
    return ended;
}

}  // namespace

int supervise(std::vector<std::string> argv, std::string_view after_crash) {
    const sigset_t signals = watched_signals();
    sigset_t original;
    ::sigprocmask(SIG_BLOCK, &signals, &original);
    int pause_ms = kFirstPauseMs;
    bool stopping = false;
    for (;;) {
        const std::int64_t started = monotonic_ms();
        const pid_t child = start_child(argv, original);
        if (child < 0) {
            log::error("cannot start the server", {{"errno", errno}});
        } else {
            int status = 0;
            while (!reap(child, status)) {
                const int signal = wait_signal(signals, -1);
                if (signal != SIGTERM && signal != SIGINT) continue;
                stopping = true;
                ::kill(child, SIGTERM);
            }
            if (stopping || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return 0;
            log::error("server ended", {{"pid", child},
                                        {"exit_code", WIFEXITED(status) ? WEXITSTATUS(status) : -1},
                                        {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0}});
            if (argv.back() != after_crash) argv.emplace_back(after_crash);
        }
        if (monotonic_ms() - started > kGoodRunMs) pause_ms = kFirstPauseMs;
        const std::int64_t until = monotonic_ms() + pause_ms;
        while (monotonic_ms() < until) {
            const int signal = wait_signal(signals, static_cast<int>(until - monotonic_ms()));
            if (signal == SIGTERM || signal == SIGINT) return 0;
        }
        pause_ms = std::min(pause_ms * 2, kLongestPauseMs);
    }
}

}  // namespace gb::interpreter
