// SPDX-License-Identifier: Apache-2.0
// A kernel that is spoken to through pipes: requests in one, answers in another, and what the code prints in
// its standard output and error, which children of the kernel share. Coroutines on the server's thread serve
// the pipes.
#pragma once

#include "guest/interpreter/kernel.h"
#include "guest/interpreter/kernel_start.h"
#include "guest/interpreter/pipe_codec.h"

namespace gb::interpreter {

// The child's numbers of the pipes beside 1 and 2.
struct PipeNumbers {
    int requests = 3;
    int answers = 4;
};

class PipedKernel : public Kernel {
  public:
    // Spawns the command, whose `fds` are filled in here, and waits until the kernel is ready.
    static awaitable<Result<std::unique_ptr<Kernel>>> start(KernelCommand command, PipeNumbers numbers,
                                                            std::unique_ptr<PipeCodec> codec,
                                                            KernelSurroundings around);
    ~PipedKernel() override;

    std::string execute(const Cell& cell) override;
    std::string call(const HiddenCall& call) override;
    void interrupt() override;
    // Nothing is read any more, so whoever writes waits: also the kernel's children.
    void pause_output() override;
    void resume_output() override;

  private:
    class Pipes;

    PipedKernel(std::unique_ptr<KernelProcess> process, std::shared_ptr<Wakeup> wakeup);
    awaitable<Status> wait_until_ready();

    std::shared_ptr<Pipes> pipes_;  // shared with its coroutines
    int executions_ = 0;
};

}  // namespace gb::interpreter
