// SPDX-License-Identifier: Apache-2.0
// The Python process that kernels are forked from (kernel/glovebox_zygote.py): they need not import what it
// has imported, and share its memory. It refuses when a package was changed since, for a new kernel must see
// what is installed.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "guest/interpreter/kernel_start.h"

namespace gb::interpreter {

class PythonZygote : public std::enable_shared_from_this<PythonZygote> {
  public:
    // Spawns it; `modules` are imported beside those of the kernel itself.
    static Result<std::shared_ptr<PythonZygote>> spawn(const KernelOptions& options,
                                                       const std::vector<std::string>& modules,
                                                       const asio::any_io_executor& executor);
    ~PythonZygote();

    // Until it has imported everything, or will never have. False for the latter.
    awaitable<bool> wait_ready();
    [[nodiscard]] bool ready() const { return ready_; }

    // A kernel of its own on the connection file in `command.folder`, in `command.cwd`; nothing else of the
    // command counts. failed_precondition when the zygote refuses, unavailable when it has gone: start one
    // from nothing then.
    awaitable<Result<std::unique_ptr<KernelProcess>>> fork(const KernelCommand& command);

    void close();  // ends it; kernels live on

  private:
    struct Waiting {
        explicit Waiting(const asio::any_io_executor& executor) : answered(executor) {}
        Gate answered;
        std::string line;  // empty when none will come
    };
    class Pipes;

    PythonZygote(const asio::any_io_executor& executor, std::unique_ptr<KernelProcess> process);
    awaitable<void> read_answers();
    void gone();
    bool say(std::string_view line);

    asio::any_io_executor executor_;
    std::unique_ptr<KernelProcess> process_;
    std::unique_ptr<Pipes> pipes_;
    std::deque<std::shared_ptr<Waiting>> waiting_;  // in the order of the requests
    Gate started_;                                  // it is ready, or has gone
    bool ready_ = false;
};

}  // namespace gb::interpreter
