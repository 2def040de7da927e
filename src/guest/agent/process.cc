// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/process.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/ioctl.h>
#include <sys/wait.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "guest/agent/session.h"

namespace gb::agent {
namespace {

using Clock = Subscriber::Clock;
using namespace std::chrono_literals;

constexpr std::size_t kPipeChunk = 32 * 1024;  // contract 3.3
constexpr std::size_t kTerminalChunk = 16 * 1024;
// A follower that is this far behind makes the process wait, as a full pipe would.
constexpr std::size_t kHighWater = std::size_t{1} << 20;
// But not for ever: one that takes nothing at all is dropped, the sooner if others wait because of it.
constexpr auto kStalledAlone = 30s;
constexpr auto kStalledAmongOthers = 2s;
// After the program's end its background children may still hold the pipes. What they write is passed on
// until they are silent for a moment, or for the longest grace.
constexpr auto kQuietAfterExit = 100ms;
constexpr auto kLongestGrace = 1s;
constexpr auto kClientClockSkew = 250ms;

// The names that Go's os.ProcessState prints, which clients show to people.
std::string signal_name(int signal) {
    static constexpr std::array<std::string_view, 16> kNames{"",
                                                             "hangup",
                                                             "interrupt",
                                                             "quit",
                                                             "illegal instruction",
                                                             "trace/breakpoint trap",
                                                             "aborted",
                                                             "bus error",
                                                             "floating point exception",
                                                             "killed",
                                                             "user defined signal 1",
                                                             "segmentation fault",
                                                             "user defined signal 2",
                                                             "broken pipe",
                                                             "alarm clock",
                                                             "terminated"};
    if (signal > 0 && signal < static_cast<int>(kNames.size()))
        return std::string(kNames[static_cast<std::size_t>(signal)]);
    return fmt::format("signal {}", signal);
}

EndEvent end_of(int wait_status, bool timed_out) {
    EndEvent end;
    end.timed_out = timed_out;
    if (WIFSIGNALED(wait_status)) {
        end.exit_code = -1;
        end.status = "signal: " + signal_name(WTERMSIG(wait_status));
        if (WCOREDUMP(wait_status)) end.status += " (core dumped)";
    } else {
        end.exited = true;
        end.exit_code = WEXITSTATUS(wait_status);
        end.status = fmt::format("exit status {}", end.exit_code);
    }
    return end;
}

Process::Descriptor adopt(const asio::any_io_executor& executor, UniqueFd fd) {
    if (!fd) return nullptr;
    return std::make_shared<asio::posix::stream_descriptor>(executor, fd.release());
}

}  // namespace

Process::Process(const asio::any_io_executor& executor, pid_t pid, ::process::ProcessConfig config,
                 std::optional<std::string> tag, ProcessStreams streams)
    : executor_(executor),
      pid_(pid),
      config_(std::move(config)),
      tag_(std::move(tag)),
      output_changed_(executor),
      exit_(executor),
      last_output_(Clock::now()) {
    if (streams.terminal) {
        add_output(OutputKind::terminal, std::move(streams.terminal));
        terminal_ = outputs_.front()->descriptor;
        input_ = std::make_shared<InputQueue>(InputQueue::Kind::terminal, terminal_);
        return;
    }
    add_output(OutputKind::standard_out, std::move(streams.standard_out));
    add_output(OutputKind::standard_error, std::move(streams.standard_error));
    input_ =
        std::make_shared<InputQueue>(InputQueue::Kind::pipe, adopt(executor, std::move(streams.standard_in)));
}

void Process::add_output(OutputKind kind, UniqueFd fd) {
    outputs_.push_back(std::make_unique<Output>(kind, adopt(executor_, std::move(fd)), executor_));
}

void Process::begin(std::optional<std::chrono::milliseconds> timeout, std::function<void()> on_end) {
    begun_ = true;
    on_end_ = std::move(on_end);
    auto self = shared_from_this();
    for (auto& output : outputs_) asio::co_spawn(executor_, pump(self, *output), asio::detached);
    if (timeout) {
        deadline_ = Clock::now() + *timeout;
        asio::co_spawn(executor_, watch_deadline(self), asio::detached);
    }
    if (wait_status_) asio::co_spawn(executor_, finish(self), asio::detached);
}

std::shared_ptr<Subscriber> Process::subscribe() {
    auto subscriber = std::make_shared<Subscriber>(executor_, [weak = weak_from_this()] {
        if (auto self = weak.lock())
            for (auto& output : self->outputs_) output->room.notify();
    });
    if (end_)
        subscriber->push(end_);
    else
        subscribers_.push_back(subscriber);
    return subscriber;
}

void Process::unsubscribe(const std::shared_ptr<Subscriber>& subscriber) {
    std::erase(subscribers_, subscriber);
    for (auto& output : outputs_) output->room.notify();
}

void Process::publish(const EventPtr& event) {
    for (auto& subscriber : subscribers_) subscriber->push(event);
}

awaitable<void> Process::wait_for_room(Output& output) {
    for (;;) {
        const auto limit = subscribers_.size() > 1 ? Clock::duration(kStalledAmongOthers) : kStalledAlone;
        const auto now = Clock::now();
        auto next_look = Clock::time_point::max();
        for (auto& subscriber : std::vector(subscribers_)) {
            if (subscriber->queued_bytes() < kHighWater) continue;
            const auto patience_ends = subscriber->last_progress() + limit;
            if (now < patience_ends) {
                next_look = std::min(next_look, patience_ends);
            } else {
                subscriber->cut();
                std::erase(subscribers_, subscriber);
            }
        }
        if (next_look == Clock::time_point::max()) co_return;
        output.held_up = true;
        co_await output.room.wait_until(next_look);
        output.held_up = false;
    }
}

// One read, of which the followers hear.
Process::Taken Process::take(Output& output) {
    // One for all processes, because nothing is awaited while it is in use: a thousand silent ones need none.
    thread_local std::array<char, kPipeChunk> buffer;
    const std::size_t most = output.kind == OutputKind::terminal ? kTerminalChunk : kPipeChunk;
    ssize_t n = 0;
    do n = ::read(output.descriptor->native_handle(), buffer.data(), most);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) return Taken::nothing_yet;
    if (n <= 0) return Taken::its_end;  // a terminal says "input/output error" when its last program has gone
    const auto size = static_cast<std::size_t>(n);
    last_output_ = Clock::now();
    output.pace.read(last_output_, size == most);
    // A program that uses both outputs in turn is read as it writes: the order of what was gathered could not be told.
    if (last_used_ != nullptr && last_used_ != &output)
        for (auto& each : outputs_) each->pace.reset();
    last_used_ = &output;
    output.must_drain -= std::min(output.must_drain, size);
    if (!subscribers_.empty())
        publish(std::make_shared<const Event>(OutputEvent{output.kind, std::string(buffer.data(), size)}));
    output_changed_.notify();
    return Taken::something;
}

// What another output gathers was written before what is there now: the order in which a program uses its outputs stays.
void Process::take_older(const Output& than) {
    for (auto& other : outputs_) {
        if (other.get() == &than || !other->gathers) continue;
        take(*other);
        other->room.notify();  // its pause is another one
    }
}

awaitable<void> Process::gather(Output& output) {
    // The end of the program is not waited for: what is left goes out with it.
    while ((!wait_status_ || end_) && output.descriptor->is_open() && output.pace.pauses(Clock::now())) {
        output.gathers = true;
        co_await output.room.wait_until(output.pace.next());
    }
    output.gathers = false;
}

awaitable<void> Process::pump(std::shared_ptr<Process> self, Output& output) {
    output.descriptor->native_non_blocking(true);
    for (;;) {
        co_await self->gather(output);
        co_await self->wait_for_room(output);
        if (!output.descriptor->is_open()) break;
        self->take_older(output);
        const Taken taken = self->take(output);
        if (taken == Taken::its_end) break;
        if (taken == Taken::nothing_yet) {
            auto [ec] =
                co_await output.descriptor->async_wait(asio::posix::stream_descriptor::wait_read, kErrorTuple);
            if (ec) break;
            continue;
        }
        // A program that never stops must not keep the loop to itself.
        co_await asio::post(self->executor_, asio::use_awaitable);
    }
    output.done = true;
    output.pace.reset();
    boost::system::error_code ignored;
    if (!self->terminal_) output.descriptor->close(ignored);
    self->output_changed_.notify();
}

void Process::exited(int wait_status) {
    wait_status_ = wait_status;
    input_->shut();
    exit_.notify();
    // Whatever the program itself has written is in the pipe by now.
    for (auto& output : outputs_) {
        int pending = 0;
        if (!output->done && ::ioctl(output->descriptor->native_handle(), FIONREAD, &pending) == 0)
            output->must_drain = static_cast<std::size_t>(pending);
        output->room.notify();
    }
    if (begun_) asio::co_spawn(executor_, finish(shared_from_this()), asio::detached);
}

awaitable<void> Process::finish(std::shared_ptr<Process> self) {
    auto grace_ends = Clock::time_point::max();
    for (;;) {
        if (std::ranges::all_of(self->outputs_, [](auto& output) { return output->done; })) break;
        auto wake = Clock::time_point::max();
        // While a slow follower holds up what the program wrote, the end waits behind it.
        if (std::ranges::all_of(self->outputs_, [](auto& output) { return output->drained(); })) {
            const auto now = Clock::now();
            if (grace_ends == Clock::time_point::max()) {
                grace_ends = now + kLongestGrace;
                self->last_output_ = now;
            }
            wake = std::min(grace_ends, self->last_output_ + kQuietAfterExit);
            if (now >= wake) break;
        }
        co_await self->output_changed_.wait_until(wake);
    }
    self->end_ = std::make_shared<const Event>(end_of(*self->wait_status_, self->timed_out_));
    self->publish(self->end_);
    self->subscribers_.clear();
    for (auto& output : self->outputs_) output->room.notify();
    // Pipes stay open, read and dropped: a background child would die of SIGPIPE at its next line. A terminal
    // goes away with its session, as when its window is closed.
    boost::system::error_code ignored;
    if (self->terminal_) self->terminal_->close(ignored);
    if (self->on_end_) self->on_end_();
}

awaitable<void> Process::watch_deadline(std::shared_ptr<Process> self) {
    while (self->is_running() && Clock::now() < *self->deadline_)
        co_await self->exit_.wait_until(*self->deadline_);
    self->expire();
}

void Process::expire() {
    if (!is_running()) return;
    timed_out_ = true;
    kill_session(pid_);
}

void Process::starter_left() {
    if (deadline_ && *deadline_ - Clock::now() < kClientClockSkew) expire();
}

// Who writes waits for what comes of it.
void Process::answer_at_once() {
    for (auto& output : outputs_) {
        output->pace.reset();
        output->room.notify();
    }
}

awaitable<Status> Process::write_stdin(std::string data) {
    if (terminal_) co_return fail(ErrorCode::internal, "the process has a terminal: send the input as pty");
    answer_at_once();
    co_return co_await input_->write(std::move(data));
}

awaitable<Status> Process::write_terminal(std::string data) {
    if (!terminal_)
        co_return fail(ErrorCode::internal, "the process has no terminal: send the input as stdin");
    answer_at_once();
    co_return co_await input_->write(std::move(data));
}

awaitable<Status> Process::close_stdin() {
    if (terminal_)
        co_return fail(ErrorCode::internal,
                       "the process has a terminal, which has no end of file: send Ctrl-D");
    co_return co_await input_->close();
}

Status Process::resize(const TerminalSize& size) {
    if (!terminal_ || !terminal_->is_open())
        return fail(ErrorCode::failed_precondition, fmt::format("process {} has no terminal", pid_));
    return resize_terminal(terminal_->native_handle(), size);
}

Status Process::signal(int signal) {
    // Only before its end is reaped does the number certainly mean this process.
    if (has_exited()) return fail(ErrorCode::not_found, fmt::format("process with pid {} not found", pid_));
    if (terminal_ && signal == SIGKILL)
        kill_session(pid_);  // a shell's jobs are in groups of their own
    else if (!signal_group(pid_, signal))
        return fail_errno(fmt::format("signal process {}", pid_));
    return {};
}

}  // namespace gb::agent
