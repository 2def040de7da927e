// SPDX-License-Identifier: Apache-2.0
// Starts the kernel of a language: which program it is, and how it is spoken to.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <zmq.hpp>

#include "base/process_watch.h"
#include "base/stall.h"
#include "guest/interpreter/kernel.h"
#include "guest/interpreter/runtimes.h"

namespace gb::interpreter {

// How long a kernel's start is waited for: as long as it is at work, an hour at most. An emulated machine under load needs
// minutes, and more where a kernel is compiled first.
class KernelStartLimit {
  public:
    explicit KernelStartLimit(pid_t kernel) : watch_(kernel, Family::with_descendants) {}
    // Asked about once a second. deadline_exceeded.
    Status check();

  private:
    StallLimit limit_{{std::chrono::minutes(3), std::chrono::hours(1)}};
    ProcessWatch watch_;
};

struct KernelOptions {
    std::filesystem::path run_dir;  // kernels live in <run_dir>/kernels/<id>
    std::filesystem::path scripts;  // what write_kernel_scripts made
    Runtimes runtimes;
    std::string language = "python";  // normalised
    std::string cwd;                  // of the kernel; the server's own when it does not exist
};

class PythonZygote;

// What a kernel's messages need to reach the server.
struct KernelSurroundings {
    zmq::context_t& zmq;
    asio::any_io_executor executor;
    std::shared_ptr<Wakeup> wakeup;        // notified whenever there is something new
    std::shared_ptr<PythonZygote> zygote;  // may be null
};

// Spawns it and waits until it takes requests. unimplemented when the sandbox has no kernel for the language.
awaitable<Result<std::unique_ptr<Kernel>>> start_kernel(KernelOptions options, KernelSurroundings around);

}  // namespace gb::interpreter
