// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/piped_kernel.h"

#include <sys/syscall.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "guest/interpreter/pipe.h"
#include "guest/interpreter/utf8.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;
using asio::posix::stream_descriptor;

constexpr std::size_t kChunk = 64UL << 10;
// What a process has written before it answered: no more than a pipe holds, even one that was made larger.
constexpr std::size_t kPipeLimit = 1UL << 20;
constexpr std::size_t kLastWords = 1000;  // bytes of complaints that explain why a kernel did not start

// What code prints, cut where a character ends.
struct TextPipe {
    TextPipe(const asio::any_io_executor& executor, UniqueFd fd, std::string_view stream)
        : descriptor(executor, fd.release()), name(stream) {}
    stream_descriptor descriptor;
    std::string_view name;  // of the Jupyter stream
    std::string carry;      // the beginning of a character
};

}  // namespace

class PipedKernel::Pipes : public std::enable_shared_from_this<Pipes> {
  public:
    struct Ends {
        UniqueFd requests, answers, out, err, pidfd;
    };
    Pipes(const asio::any_io_executor& executor, Ends ends, std::unique_ptr<PipeCodec> codec,
          std::shared_ptr<Inbox> inbox, KernelProcess& process)
        : executor_(executor),
          requests_(executor, ends.requests.release()),
          answers_(executor, ends.answers.release()),
          exit_(executor, ends.pidfd.release()),
          out_(executor, std::move(ends.out), "stdout"),
          err_(executor, std::move(ends.err), "stderr"),
          codec_(std::move(codec)),
          inbox_(std::move(inbox)),
          process_(&process) {}

    void run() {
        auto self = shared_from_this();
        asio::co_spawn(executor_, [self] { return self->read_text(self->out_); }, asio::detached);
        asio::co_spawn(executor_, [self] { return self->read_text(self->err_); }, asio::detached);
        asio::co_spawn(executor_, [self] { return self->read_answers(); }, asio::detached);
        asio::co_spawn(executor_, [self] { return self->wait_for_exit(); }, asio::detached);
    }

    void close() {
        process_ = nullptr;
        resume();
        boost::system::error_code ignored;
        for (stream_descriptor* one : {&requests_, &answers_, &exit_, &out_.descriptor, &err_.descriptor})
            one->close(ignored);
    }

    std::string send(PipeRequest request) {
        request.id = std::to_string(++requests_made_);
        auto bytes = codec_->encode(request);
        if (!bytes) {  // it never reaches the kernel
            inbox_->push(error_message(request.id, "UnexpectedEndOfExecution", bytes.error().message));
            for (Message& message : finished_messages(request.id, false)) inbox_->push(std::move(message));
            return request.id;
        }
        unanswered_.push_back({.id = request.id, .cell = !request.call, .bytes = *std::move(bytes)});
        if (unanswered_.size() == 1) write_front();
        return request.id;
    }

    // Now, or as soon as it may be.
    void interrupt() {
        interrupt_wanted_ = !interruptible();
        if (!interrupt_wanted_) process_->interrupt();
    }

    void pause() {
        if (!held_) held_ = std::make_shared<Gate>(executor_);
    }
    void resume() {
        if (held_) std::exchange(held_, nullptr)->open();
    }

    [[nodiscard]] bool ready() const { return ready_; }
    [[nodiscard]] const std::string& complaints() const { return complaints_; }

  private:
    struct Unanswered {
        std::string id;
        bool cell = false;
        std::string bytes;
    };

    // What was sent last is what is to be interrupted.
    [[nodiscard]] bool interruptible() const {
        return codec_->interruptible_at_once() || unanswered_.empty() || started_ == unanswered_.back().id;
    }

    [[nodiscard]] bool closed() const { return process_ == nullptr; }

    awaitable<bool> readable(stream_descriptor& descriptor) {
        auto [error] =
            co_await descriptor.async_wait(stream_descriptor::wait_read, kErrorTuple);
        while (held_) co_await std::shared_ptr<Gate>(held_)->wait();
        co_return !error && !closed();
    }

    awaitable<void> read_text(TextPipe& pipe) {
        while (co_await readable(pipe.descriptor))
            if (!take_text(pipe, kChunk)) co_return;
    }

    // Publishes what is there, up to `limit`. False at the end of the pipe.
    bool take_text(TextPipe& pipe, std::size_t limit) {
        std::string chunk(kChunk, '\0');
        for (std::size_t taken = 0; taken < limit;) {
            const ssize_t n = ::read(pipe.descriptor.native_handle(), chunk.data(), chunk.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return n < 0 && errno == EAGAIN;
            taken += static_cast<std::size_t>(n);
            publish(pipe, std::string_view(chunk).substr(0, static_cast<std::size_t>(n)));
        }
        return true;
    }

    void publish(TextPipe& pipe, std::string_view bytes) {
        pipe.carry += bytes;
        const std::size_t whole = pipe.carry.size() - unfinished_utf8(pipe.carry);
        if (whole == 0) return;
        std::string rest = pipe.carry.substr(whole);
        pipe.carry.resize(whole);
        push_text(pipe, std::exchange(pipe.carry, std::move(rest)));
    }

    void push_text(const TextPipe& pipe, std::string text) {
        if (!ready_ && pipe.name == "stderr" && complaints_.size() < kLastWords) complaints_ += text;
        if (unanswered_.empty()) return;  // between cells it is said to nobody
        if (codec_->line_feeds_apart() && text.size() > 1 && text.ends_with('\n')) {
            text.pop_back();
            push_text(pipe, std::move(text));
            text = "\n";
        }
        Message message;
        message.type = "stream";
        message.parent_id = unanswered_.front().id;
        message.content["name"] = pipe.name;
        message.content["text"] = std::move(text);
        inbox_->push(std::move(message));
    }

    // All that was printed so far. A character that is half there at the end of a cell stays half.
    void drain_text() {
        for (TextPipe* pipe : {&out_, &err_}) {
            take_text(*pipe, kPipeLimit);
            if (!pipe->carry.empty()) push_text(*pipe, std::exchange(pipe->carry, std::string()));
        }
    }

    awaitable<void> read_answers() {
        std::string buffer;
        std::size_t searched = 0;
        std::string chunk(kChunk, '\0');
        while (co_await readable(answers_)) {
            const ssize_t n = ::read(answers_.native_handle(), chunk.data(), chunk.size());
            if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (n <= 0) break;
            buffer.append(chunk, 0, static_cast<std::size_t>(n));
            std::size_t begin = 0;
            for (std::size_t end; (end = buffer.find('\n', searched)) != std::string::npos;
                 searched = begin) {
                answer(std::string_view(buffer).substr(begin, end - begin));
                if (closed()) co_return;
                begin = end + 1;
            }
            buffer.erase(0, begin);
            searched = buffer.size();
        }
        // Deaf and dumb: the code closed the pipe. Nothing but a new process helps.
        if (!closed()) ::kill(-process_->pid(), SIGKILL);
    }

    void answer(std::string_view line) {
        drain_text();
        auto answer = codec_->decode(line);
        if (!answer) {
            log::warn("kernel message dropped", {{"error", answer.error().message}});
            return;
        }
        switch (answer->kind) {
            case PipeAnswer::Kind::ready:
                ready_ = true;
                inbox_->wakeup->notify();
                break;
            case PipeAnswer::Kind::started:
                if (!unanswered_.empty()) started_ = unanswered_.front().id;
                if (interrupt_wanted_) interrupt();
                break;
            case PipeAnswer::Kind::message:
                for (Message& message : answer->messages) push(std::move(message));
                break;
        }
    }

    void push(Message message) {
        const bool last = message.type == "execute_reply";
        if (last && !unanswered_.empty() && unanswered_.front().id == message.parent_id) {
            unanswered_.pop_front();
            if (!unanswered_.empty()) write_front();
            if (unanswered_.empty()) interrupt_wanted_ = false;
        }
        inbox_->push(std::move(message));
    }

    // One request at a time: what is printed between two answers can then belong to one request only.
    void write_front() {
        to_write_ += std::exchange(unanswered_.front().bytes, std::string());
        if (writing_) return;
        writing_ = true;
        asio::co_spawn(
            executor_, [self = shared_from_this()] { return self->write_requests(); }, asio::detached);
    }

    awaitable<void> write_requests() {
        auto self = shared_from_this();
        while (!to_write_.empty() && !closed()) {
            const ssize_t n = ::write(requests_.native_handle(), to_write_.data(), to_write_.size());
            if (n > 0) {
                to_write_.erase(0, static_cast<std::size_t>(n));
            } else if (errno == EAGAIN) {
                auto [error] = co_await requests_.async_wait(stream_descriptor::wait_write,
                                                             kErrorTuple);
                if (error) break;
            } else if (errno != EINTR) {
                break;  // it has gone, which wait_for_exit hears of
            }
        }
        writing_ = false;
    }

    awaitable<void> wait_for_exit() {
        // Asio may report what an earlier descriptor had in the same place, so the kernel has the last word.
        for (pollfd item{exit_.native_handle(), POLLIN, 0}; ::poll(&item, 1, 0) != 1;) {
            auto [error] =
                co_await exit_.async_wait(stream_descriptor::wait_read, kErrorTuple);
            if (error || closed()) co_return;
        }
        drain_text();
        // `exit 3` in a shell script is how it ends.
        const std::optional<int> code = process_->exit_code();
        if (code && codec_->exit_ends_cell() && !unanswered_.empty() && unanswered_.front().cell) {
            const std::string id = unanswered_.front().id;
            if (*code != 0) inbox_->push(error_message(id, "ExitCode", std::to_string(*code)));
            for (Message& message : finished_messages(id, *code == 0, true)) inbox_->push(std::move(message));
        }
        inbox_->end();
    }

    asio::any_io_executor executor_;
    stream_descriptor requests_, answers_, exit_;
    TextPipe out_, err_;
    std::unique_ptr<PipeCodec> codec_;
    std::shared_ptr<Inbox> inbox_;
    KernelProcess* process_;  // null once closed
    std::deque<Unanswered> unanswered_;
    std::string started_;  // the request the kernel has begun
    bool interrupt_wanted_ = false;
    std::shared_ptr<Gate> held_;
    std::string to_write_;
    bool writing_ = false;
    std::uint64_t requests_made_ = 0;
    bool ready_ = false;
    std::string complaints_;
};

PipedKernel::PipedKernel(std::unique_ptr<KernelProcess> process, std::shared_ptr<Wakeup> wakeup)
    : Kernel(std::move(process), std::move(wakeup)) {}

PipedKernel::~PipedKernel() {
    if (pipes_) pipes_->close();
}

awaitable<Result<std::unique_ptr<Kernel>>> PipedKernel::start(KernelCommand command, PipeNumbers numbers,
                                                              std::unique_ptr<PipeCodec> codec,
                                                              KernelSurroundings around) {
    GB_CO_TRY_ASSIGN(Pipe requests, make_pipe());
    GB_CO_TRY_ASSIGN(Pipe answers, make_pipe());
    GB_CO_TRY_ASSIGN(Pipe out, make_pipe());
    GB_CO_TRY_ASSIGN(Pipe err, make_pipe());
    command.fds = {{requests.read.get(), numbers.requests},
                   {answers.write.get(), numbers.answers},
                   {out.write.get(), 1},
                   {err.write.get(), 2}};
    GB_CO_TRY_ASSIGN(std::unique_ptr<KernelProcess> process, KernelProcess::spawn(command));
    // One of its own, no duplicate: epoll would go on watching what a duplicate shares after this one is
    // closed.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process->pid(), 0)));
    if (!pidfd) co_return fail_errno("pidfd_open");

    std::unique_ptr<PipedKernel> kernel(new PipedKernel(std::move(process), around.wakeup));
    kernel->pipes_ = std::make_shared<Pipes>(around.executor,
                                             Pipes::Ends{.requests = not_blocking(std::move(requests.write)),
                                                         .answers = not_blocking(std::move(answers.read)),
                                                         .out = not_blocking(std::move(out.read)),
                                                         .err = not_blocking(std::move(err.read)),
                                                         .pidfd = std::move(pidfd)},
                                             std::move(codec), kernel->inbox_, *kernel->process_);
    kernel->pipes_->run();
    // The child's ends are the child's alone, or the end of its output would never be seen.
    requests.read.reset();
    answers.write.reset();
    out.write.reset();
    err.write.reset();
    GB_CO_TRY(co_await kernel->wait_until_ready());
    co_return kernel;
}

awaitable<Status> PipedKernel::wait_until_ready() {
    KernelStartLimit limit(process_->pid());
    while (!pipes_->ready()) {
        if (exited()) {
            const std::string how = process_->describe_end();
            const std::string& why = pipes_->complaints();
            co_return fail(ErrorCode::unavailable, why.empty() ? fmt::format("the kernel {}", how)
                                                               : fmt::format("the kernel {}: {}", how, why));
        }
        GB_CO_TRY(limit.check());
        co_await inbox_->wakeup->wait_for(1s);
    }
    co_return Status();
}

std::string PipedKernel::execute(const Cell& cell) {
    PipeRequest request;
    request.code = cell.code;
    request.language = cell.language;
    const int count = executions_ + 1;
    if (cell.store_history) executions_ = count;
    request.count = count;
    std::string id = pipes_->send(std::move(request));
    Message input;
    input.type = "execute_input";
    input.parent_id = id;
    input.content["execution_count"] = count;
    inbox_->push(std::move(input));
    return id;
}

std::string PipedKernel::call(const HiddenCall& call) {
    PipeRequest request;
    request.call = call;
    return pipes_->send(std::move(request));
}

void PipedKernel::interrupt() {
    pipes_->interrupt();
}

void PipedKernel::pause_output() {
    pipes_->pause();
}

void PipedKernel::resume_output() {
    pipes_->resume();
}

}  // namespace gb::interpreter
