// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/context.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "guest/interpreter/execution.h"
#include "guest/interpreter/interrupts.h"
#include "guest/interpreter/output_line.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;

// The end of publishing follows the reply within a millisecond. Should it ever get lost, a silence this long
// ends the cell instead of the client's patience.
constexpr std::chrono::milliseconds kLostIdle = 60s;
constexpr std::chrono::milliseconds kTryAgain = 5s;

void finish_with(OutputStream& output, std::string_view last_line) {
    output.push(last_line);
    output.push(end_of_execution_line());
    output.close();
}

void log_hidden(const Message& message) {
    auto text = [&](std::string_view name) {
        const boost::json::value* value = message.content.if_contains(name);
        return value != nullptr && value->is_string() ? std::string(std::string_view(value->get_string()))
                                                      : "";
    };
    if (message.type == "stream") log::info("from the kernel", {{"text", text("text")}});
    // The name alone: the value may quote an environment variable.
    if (message.type == "execute_reply" && text("status") == "error")
        log::warn("hidden code failed", {{"error", text("ename")}});
}

}  // namespace

Context::Context(asio::any_io_executor executor, zmq::context_t& zmq, Options options)
    : id_(random_uuid()),
      executor_(executor),
      zmq_(zmq),
      options_(std::move(options)),
      wakeup_(std::make_shared<Wakeup>(executor)),
      started_(executor) {}

awaitable<Status> Context::wait_started() {
    co_await started_.wait();
    co_return start_status_;
}

std::shared_ptr<OutputStream> Context::submit(Job job) {
    auto output = std::make_shared<OutputStream>(executor_, wakeup_);
    if (closing_) {
        finish_with(*output, error_line("UnexpectedEndOfExecution", "Context was removed", ""));
        return output;
    }
    jobs_.push_back({std::move(job), output});
    wakeup_->notify();
    return output;
}

void Context::claim() {
    options_.role = Role::in_use;
    if (kernel_) kernel_->process().set_oom_score(KernelProcess::kOomScore);
    wakeup_->notify();
}

awaitable<Status> Context::restart() {
    if (closing_) co_return fail(ErrorCode::not_found, fmt::format("Context {} not found", id_));
    if (!restart_) restart_ = std::make_shared<Restart>(executor_);
    std::shared_ptr<Restart> mine = restart_;
    wakeup_->notify();
    co_await mine->done.wait();
    co_return mine->outcome;
}

void Context::close() {
    closing_ = true;
    wakeup_->notify();
}

awaitable<void> Context::run() {
    auto self = shared_from_this();
    start_status_ = co_await start_kernel();
    started_.open();
    if (start_status_) co_await serve();
    kernel_.reset();
    closing_ = true;
    for (Queued& queued : jobs_)
        finish_with(*queued.output, error_line("UnexpectedEndOfExecution", "Context was removed", ""));
    jobs_.clear();
    if (restart_) {
        restart_->outcome = fail(ErrorCode::not_found, fmt::format("Context {} not found", id_));
        std::exchange(restart_, nullptr)->done.open();
    }
}

awaitable<Status> Context::start_kernel() {
    kernel_.reset();
    applied_.reset();
    const std::int64_t since = monotonic_ms();
    auto kernel = co_await interpreter::start_kernel(
        options_.kernel, {.zmq = zmq_,
                          .executor = executor_,
                          .wakeup = wakeup_,
                          .zygote = options_.zygote ? options_.zygote() : nullptr});
    if (!kernel) {
        log::error("kernel did not start", {{"context", id_}, {"error", kernel.error().message}});
        co_return std::unexpected(kernel.error().with("Failed to start a kernel"));
    }
    kernel_ = *std::move(kernel);
    kernel_->process().set_oom_score(spare() ? KernelProcess::kSpareOomScore : KernelProcess::kOomScore);
    log::info("kernel started",
              {{"context", id_}, {"pid", kernel_->process().pid()}, {"ms", monotonic_ms() - since}});
    co_return Status();
}

awaitable<void> Context::serve() {
    while (!closing_) {
        if (spare() && kernel_ != nullptr && kernel_->exited()) {
            log::warn("spare kernel ended", {{"context", id_}, {"how", kernel_->process().describe_end()}});
            kernel_.reset();
        } else if (restart_ != nullptr || (kernel_ != nullptr && kernel_->exited())) {
            if (restart_ == nullptr)
                log::warn("kernel ended", {{"context", id_}, {"how", kernel_->process().describe_end()}});
            std::shared_ptr<Restart> asked = std::exchange(restart_, nullptr);
            Status outcome = co_await start_kernel();
            if (asked) {
                asked->outcome = outcome;
                asked->done.open();
            }
        } else if (!jobs_.empty()) {
            Queued queued = std::move(jobs_.front());
            jobs_.pop_front();
            co_await execute(std::move(queued));
        } else {
            // Between cells only threads that a cell left running have something to say, to nobody.
            while (kernel_ != nullptr && kernel_->next_message()) {
            }
            if (spare()) {
                co_await wakeup_->wait();
            } else if (kernel_ == nullptr) {  // it could not be started again: what was missing may come back
                if (!co_await wakeup_->wait_for(kTryAgain)) (void)co_await start_kernel();
            } else if (!kernel_->exited()) {
                co_await wakeup_->wait();
            }
        }
    }
}

awaitable<void> Context::execute(Queued queued) {
    if (queued.output->abandoned()) co_return;
    if (kernel_ == nullptr) {  // it died and could not be started again: one more try for everyone who asks
        Status started = co_await start_kernel();
        if (!started) {
            finish_with(*queued.output, error_line("UnexpectedEndOfExecution", started.error().message, ""));
            co_return;
        }
    }
    apply_guest_state();
    const EnvMap& env = queued.job.env;
    if (!env.empty()) kernel_->call(set_call_env(env));
    Outcome outcome = co_await run_cell(queued);
    queued.output->push(end_of_execution_line());
    queued.output->close();
    if (outcome == Outcome::finished && !env.empty()) co_await run_hidden(set_call_env({}));
}

void Context::apply_guest_state() {
    GuestState now = read_guest_state(options_.kernel.run_dir);
    if (auto call = guest_state_call(applied_, now)) kernel_->call(*call);
    applied_ = std::move(now);
}

awaitable<Context::Outcome> Context::run_cell(const Queued& queued) {
    OutputStream& output = *queued.output;
    const std::string& cell_language = queued.job.language.empty() ? language() : queued.job.language;
    Execution execution(kernel_->execute({.code = queued.job.code, .language = cell_language, .store_history = queued.job.store_history}));
    InterruptSchedule interrupts;
    std::int64_t last_heard = monotonic_ms();
    for (;;) {
        while (std::optional<Message> message = kernel_->next_message()) {
            for (const std::string& line : execution.feed(*message)) output.push(line);
            last_heard = monotonic_ms();
        }
        if (execution.finished()) {
            if (!execution.asked_to_exit()) co_return Outcome::finished;
            output.push(stream_line(
                Stream::err, "The kernel has ended as asked and is started again: its variables are lost.\n",
                rfc3339(now_ms())));
            // It dies at some moment from now on, and would take one of the next cells with it.
            if (!restart_) restart_ = std::make_shared<Restart>(executor_);
            co_return Outcome::kernel_gone;
        }
        if (disturbed()) {
            output.push(disturbance_line());
            co_return Outcome::kernel_gone;
        }
        const std::int64_t now = monotonic_ms();
        if (execution.replied() && now - last_heard > kLostIdle.count()) co_return Outcome::finished;
        std::chrono::milliseconds patience = kLostIdle;
        if (output.abandoned()) {
            switch (interrupts.next(now)) {
                case InterruptSchedule::Step::interrupt:
                    kernel_->interrupt();
                    break;
                case InterruptSchedule::Step::give_up:
                    log::warn("kernel ignores interrupts and is restarted", {{"context", id_}});
                    if (!restart_) restart_ = std::make_shared<Restart>(executor_);
                    continue;
                case InterruptSchedule::Step::wait:
                    break;
            }
            patience = interrupts.until_next(now);
        } else if (output.congested()) {
            co_await wait_for_client(output);
            continue;
        }
        co_await wakeup_->wait_for(patience);
    }
}

// A client that reads slowly slows the code down, as a full pipe would; nothing is dropped and memory stays
// bounded.
awaitable<void> Context::wait_for_client(const OutputStream& output) {
    kernel_->pause_output();
    while (output.congested() && !closing_ && restart_ == nullptr && !kernel_->exited())
        co_await wakeup_->wait();
    kernel_->resume_output();
}

awaitable<Context::Outcome> Context::run_hidden(const HiddenCall& call) {
    Execution execution(kernel_->call(call));
    while (!execution.finished()) {
        while (std::optional<Message> message = kernel_->next_message()) {
            log_hidden(*message);
            execution.feed(*message);
        }
        if (execution.finished()) break;
        if (disturbed()) co_return Outcome::kernel_gone;
        co_await wakeup_->wait();
    }
    co_return Outcome::finished;
}

std::string Context::disturbance_line() {
    if (closing_) return error_line("UnexpectedEndOfExecution", "Context was removed", "");
    if (restart_ != nullptr) return error_line("ContextRestarting", "Context was restarted", "");
    return error_line("ContextRestarting",
                      "Context was restarted: the kernel " + kernel_->process().describe_end(), "");
}

}  // namespace gb::interpreter
