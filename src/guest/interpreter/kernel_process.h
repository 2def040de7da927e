// SPDX-License-Identifier: Apache-2.0
// The operating-system side of a kernel: its process, its process group, its private folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::interpreter {

// <run_dir>/kernels/<random>, for one kernel. Removed by its owner.
Result<std::filesystem::path> make_kernel_folder(const std::filesystem::path& run_dir);

struct KernelCommand {
    std::filesystem::path folder;   // of make_kernel_folder; belongs to the process from then on
    std::vector<std::string> argv;  // argv[0] is a path
    std::vector<std::string> env;   // NAME=value, beside the server's own environment
    std::string cwd;                // the server's own when it does not exist
    std::vector<std::pair<int, int>>
        fds;  // ours, theirs. Not named: 0 and 1 are /dev/null, 2 is the server's, no other
};

class KernelProcess {
  public:
    static Result<std::unique_ptr<KernelProcess>> spawn(const KernelCommand& command);
    // One that somebody else has forked, and leads its own process group. Its parent must not wait for it
    // before `release` is called, which comes last.
    static Result<std::unique_ptr<KernelProcess>> adopt(pid_t pid, std::filesystem::path folder,
                                                        std::function<void()> release);
    ~KernelProcess();  // kills the whole group, removes the folder
    KernelProcess(const KernelProcess&) = delete;
    KernelProcess& operator=(const KernelProcess&) = delete;

    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

    // What oom_score_adj of proc(5) gets: memory pressure ends a kernel before it ends the agent or this
    // server.
    static constexpr int kOomScore = 300;
    static constexpr int kSpareOomScore = 1000;
    void set_oom_score(int score);

    void interrupt();  // SIGINT to the group, as a terminal does: also reaches what the code is waiting for
    void stop();       // SIGSTOP to the kernel alone
    void resume();     // SIGCONT

    // Once the pidfd is readable. In words: "exited with code 1".
    std::string describe_end();
    std::optional<int> exit_code();  // nothing when a signal ended it

  private:
    KernelProcess(pid_t pid, UniqueFd pidfd, std::filesystem::path folder);
    bool reap();
    [[nodiscard]] std::optional<int> status_of_zombie() const;

    pid_t pid_;
    UniqueFd pidfd_;
    std::filesystem::path folder_;
    std::uint64_t kills_before_;     // out of memory, when it started; see describe_end
    std::optional<int> status_;      // of waitpid, once reaped
    std::function<void()> release_;  // of an adopted one
};

// Ends kernels that an earlier server process left behind in this run_dir and removes their folders.
void sweep_kernels(const std::filesystem::path& run_dir);

}  // namespace gb::interpreter
