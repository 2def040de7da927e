// SPDX-License-Identifier: Apache-2.0
// A kernel that speaks the Jupyter protocol over ZeroMQ: ipykernel, IRkernel.
#pragma once

#include "guest/interpreter/jupyter_client.h"
#include "guest/interpreter/kernel.h"
#include "guest/interpreter/kernel_start.h"

namespace gb::interpreter {

class JupyterKernel : public Kernel {
  public:
    // Writes a HiddenCall in the kernel's language.
    using Speak = std::string (*)(const HiddenCall&);

    // What a kernel does with output that is not read: wait, or drop it.
    enum class Output { waits, dropped };

    // Waits until the process answers on every channel. `wakeup` is notified whenever there is something new.
    static awaitable<Result<std::unique_ptr<Kernel>>> start(std::unique_ptr<KernelProcess> process,
                                                            Connection connection, Speak speak, Output output,
                                                            KernelSurroundings around);

    std::string execute(const Cell& cell) override;
    std::string call(const HiddenCall& call) override;

  private:
    JupyterKernel(std::unique_ptr<KernelProcess> process, Speak speak, std::shared_ptr<Wakeup> wakeup);
    awaitable<Status> wait_until_ready();
    std::string request(std::string_view type, boost::json::object content);

    std::string session_;
    Speak speak_;
    std::unique_ptr<JupyterClient> client_;  // goes before the process
};

}  // namespace gb::interpreter
