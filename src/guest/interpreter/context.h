// SPDX-License-Identifier: Apache-2.0
// One context: a kernel with its state, and the queue of what is to run in it. A single coroutine, run(),
// starts the kernel, executes one job after another, restarts the kernel when it dies; everybody else only
// leaves requests.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guest/interpreter/guest_state.h"
#include "guest/interpreter/kernel_start.h"
#include "guest/interpreter/output_stream.h"

namespace gb::interpreter {

struct Job {
    std::string code;
    std::string language;  // of the code, normalised; the context's own when empty
    EnvMap env;            // for this call only
    bool store_history = true;
};

class Context : public std::enable_shared_from_this<Context> {
  public:
    enum class Role { in_use, spare };
    struct Options {
        KernelOptions kernel;
        std::function<std::shared_ptr<PythonZygote>()>
            zygote;  // the one there is when a kernel is to be started
        Role role = Role::in_use;
    };

    Context(asio::any_io_executor executor, zmq::context_t& zmq, Options options);

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const std::string& language() const { return options_.kernel.language; }
    [[nodiscard]] const std::string& cwd() const { return options_.kernel.cwd; }

    // The life of the context; returns after close(). Spawned once, by the registry.
    awaitable<void> run();

    awaitable<Status> wait_started();  // the outcome of the first start
    [[nodiscard]] bool ready() const {
        return started_.is_open() && kernel_ != nullptr && !kernel_->exited();
    }

    // A spare one waits for somebody to want it; its kernel goes first when memory gets short.
    [[nodiscard]] bool spare() const { return options_.role == Role::spare; }
    void claim();

    // Queues code. The answer's lines come from the stream; abandon() it to take the job back or interrupt
    // it.
    std::shared_ptr<OutputStream> submit(Job job);
    awaitable<Status> restart();  // a running job ends with an error, queued ones run in the new kernel
    void close();                 // every job ends with an error

  private:
    struct Queued {
        Job job;
        std::shared_ptr<OutputStream> output;
    };
    struct Restart {
        explicit Restart(const asio::any_io_executor& executor) : done(executor) {}
        Gate done;
        Status outcome;
    };
    enum class Outcome { finished, kernel_gone };

    awaitable<Status> start_kernel();
    awaitable<void> serve();
    awaitable<void> execute(Queued queued);
    awaitable<Outcome> run_cell(const Queued& queued);
    awaitable<Outcome> run_hidden(const HiddenCall& call);  // waits for its end; what it prints is logged
    awaitable<void> wait_for_client(const OutputStream& output);
    void apply_guest_state();
    [[nodiscard]] bool disturbed() const { return closing_ || restart_ != nullptr || kernel_->exited(); }
    std::string disturbance_line();

    const std::string id_;
    asio::any_io_executor executor_;
    zmq::context_t& zmq_;
    Options options_;
    std::shared_ptr<Wakeup> wakeup_;  // of run()
    Gate started_;
    Status start_status_;
    std::unique_ptr<Kernel> kernel_;
    std::optional<GuestState> applied_;  // in the present kernel
    std::deque<Queued> jobs_;
    std::shared_ptr<Restart> restart_;  // asked for and not yet done
    bool closing_ = false;
};

}  // namespace gb::interpreter
