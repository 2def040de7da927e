// The operating-system side of a kernel: its process, its process group, its private folder.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/interpreter/connection.h"

namespace gb::interpreter {

struct KernelOptions {
    std::filesystem::path run_dir;  // kernels live in <run_dir>/kernels/<id>
    std::filesystem::path scripts;  // what write_kernel_scripts made
    std::string python = "/usr/bin/python3";
    std::string cwd;  // of the kernel; the server's own when it does not exist
};

class KernelProcess {
  public:
    static Result<std::unique_ptr<KernelProcess>> spawn(const KernelOptions& options);
    ~KernelProcess();  // kills the whole group, removes the folder
    KernelProcess(const KernelProcess&) = delete;
    KernelProcess& operator=(const KernelProcess&) = delete;

    [[nodiscard]] const Connection& connection() const { return connection_; }
    [[nodiscard]] int pidfd() const { return pidfd_.get(); }
    [[nodiscard]] pid_t pid() const { return pid_; }

    void interrupt();  // SIGINT to the group, as a terminal does: also reaches what the code is waiting for
    void stop();       // SIGSTOP to the kernel alone
    void resume();     // SIGCONT

    // How it ended, in words, once the pidfd is readable: "exited with code 1".
    std::string describe_end();

  private:
    KernelProcess(pid_t pid, UniqueFd pidfd, Connection connection, std::filesystem::path folder);
    bool reap();

    pid_t pid_;
    UniqueFd pidfd_;
    Connection connection_;
    std::filesystem::path folder_;
    std::optional<int> status_;  // of waitpid, once reaped
};

// Ends kernels that an earlier server process left behind in this run_dir and removes their folders.
void sweep_kernels(const std::filesystem::path& run_dir);

}  // namespace gb::interpreter
