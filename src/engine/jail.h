// SPDX-License-Identifier: Apache-2.0
// Runs one program where it can do no harm: own mount, pid, ipc, uts and network namespaces, a read-only root
// of prepared files with the sandbox's own files bind-mounted into it, no capabilities, no way to gain any,
// limits by control group, no descriptor that was not given. Needs root; the program runs as an ordinary
// user.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/cgroup.h"

namespace gb::engine {

struct BindMount {
    std::filesystem::path source;
    std::string target;  // inside, absolute; a file of that name is in the root already (a mount point)
    bool writable = false;
};

struct JailSpec {
    uid_t uid = 0;  // of the program; must not be 0, and no other sandbox should run under it
    gid_t gid = 0;
    int netns_fd = -1;  // borrowed until the call returns; -1: a new, empty network namespace
    std::string cgroup_name;
    CgroupLimits limits;
    bool end_with_starter = false;  // when the thread that started it ends: for what nobody takes over
};

struct JailCommand {
    std::filesystem::path root;     // becomes "/", read-only
    std::vector<BindMount> mounts;  // in this order
    // Device nodes of the host (by their number; modes and owners of the host's do not matter) that the
    // program may use, under /dev/<file name>. The root has an empty folder /dev.
    std::vector<std::filesystem::path> devices;
    std::vector<std::string> argv;  // argv[0] is the path inside
    std::vector<std::string> env;   // all of it
    // Ours, borrowed; the i-th is number i inside, -1 is /dev/null, and nothing else is open there.
    std::vector<int> descriptors;
    unsigned open_files_max = 1024;
};

struct ExitStatus {
    int code = 0;  // exit code, when signal is 0
    int signal = 0;
    bool known = true;  // false: its parent was another process, and what is above says nothing
};

// How a process that outlives its parent is known again: a process id alone may have a new owner.
struct ProcessTrace {
    pid_t pid = -1;
    std::uint64_t start_ticks = 0;  // process_facts.h
};

// A program in its jail, process 1 of its pid namespace: with it everything in the jail ends. Owns the
// process and its control group; the destructor kills, waits, and removes the group. Safe to use from several
// threads.
class JailedProcess {
  public:
    // Returns when the program runs (exec succeeded) and its limits hold. What fails on the way is named by
    // step. The group is made by the caller, from spec.cgroup_name and spec.limits, and belongs to the
    // process from here. With groups of version 1 the program is moved into it after its exec, because the
    // kernel may take 15 ms for that, in which the program can load its libraries: it must not fork, nor
    // touch anything hostile, before it is told to, after this call. A side effect: this process is not
    // dumpable any more (prctl(2), PR_SET_DUMPABLE), because its memory was for a moment that of a process
    // with another user id.
    static Result<JailedProcess> start(const JailSpec& spec, const JailCommand& command, Cgroup cgroup);

    // Takes over a program that another process started in a jail and left running, and its group. not_found
    // when it has ended, failed_precondition when the number belongs to another process now: one that started
    // at another time, runs as another user than `uid` or is not in the group. On an error the group is
    // reclaimed with all in it.
    static Result<JailedProcess> adopt(const ProcessTrace& trace, uid_t uid, Cgroup cgroup);
    // Whether adopt() would find it, with the same errors. Nothing becomes of the process or of the group.
    static Status find(const ProcessTrace& trace, uid_t uid, const Cgroup& cgroup);

    JailedProcess(JailedProcess&&) noexcept;
    JailedProcess& operator=(JailedProcess&&) noexcept;
    ~JailedProcess();

    [[nodiscard]] pid_t pid() const;                   // as seen from here
    [[nodiscard]] int pidfd() const;                   // readable when the process has ended; stays ours
    [[nodiscard]] Result<ProcessTrace> trace() const;  // while it lives
    [[nodiscard]] bool alive() const;
    std::optional<ExitStatus> wait(std::chrono::milliseconds limit);  // nothing: still alive
    Status kill();  // SIGKILL to all of the jail, reaped, group removed; idempotent
    // Lets it run on without an owner; kill() and the destructor do nothing any more.
    void leave();
    Status set_cpu_weight(unsigned weight);
    [[nodiscard]] CgroupUsage usage() const;  // after kill(): what it came to
    // Memory that ends with this process: anonymous pages, copies of a private mapping's pages among them.
    [[nodiscard]] Result<std::uint64_t> private_bytes() const;

  private:
    struct State;
    explicit JailedProcess(std::unique_ptr<State> state);
    static Result<std::unique_ptr<State>> identify(const ProcessTrace& trace, uid_t uid, const Cgroup& cgroup);
    std::unique_ptr<State> state_;
};

}  // namespace gb::engine
