// SPDX-License-Identifier: Apache-2.0
// One program that a client has started: its pipes or terminal, its followers, its end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/agent/input_queue.h"
#include "guest/agent/pace.h"
#include "guest/agent/subscriber.h"
#include "guest/agent/terminal.h"
#include "proto/process.pb.h"

namespace gb::agent {

// The agent's ends. Either `terminal`, or the three pipes (`standard_in` may be missing).
struct ProcessStreams {
    UniqueFd standard_in, standard_out, standard_error, terminal;
};

class Process : public std::enable_shared_from_this<Process> {
  public:
    using Descriptor = std::shared_ptr<asio::posix::stream_descriptor>;

    Process(const asio::any_io_executor& executor, pid_t pid, ::process::ProcessConfig config,
            std::optional<std::string> tag, ProcessStreams streams);

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const ::process::ProcessConfig& config() const { return config_; }
    [[nodiscard]] const std::optional<std::string>& tag() const { return tag_; }
    // How it ended, once its followers have been told.
    [[nodiscard]] const EndEvent* end() const { return end_ ? std::get_if<EndEvent>(end_.get()) : nullptr; }
    [[nodiscard]] bool has_exited() const { return wait_status_.has_value(); }
    // Running, and not killed at its deadline a moment ago.
    [[nodiscard]] bool is_running() const { return !wait_status_ && !timed_out_; }

    // Starts reading the output. What nobody follows is dropped, so the first follower subscribes before.
    // `timeout`: then the whole session is killed. `on_end` is called once, after the end event is out.
    void begin(std::optional<std::chrono::milliseconds> timeout, std::function<void()> on_end);

    // The follower gets all events from now on, ending with the end event; of a process that has ended, just
    // that.
    std::shared_ptr<Subscriber> subscribe();
    void unsubscribe(const std::shared_ptr<Subscriber>& subscriber);

    awaitable<Status> write_stdin(std::string data);
    awaitable<Status> write_terminal(std::string data);
    awaitable<Status> close_stdin();
    Status resize(const TerminalSize& size);
    Status signal(int signal);

    // The client that started it has gone. A client that waits for the same deadline on its own clock gives
    // up a little before the agent does, and then expects the process to be gone: so shortly before the
    // deadline counts as at it.
    void starter_left();

    // The kernel says that it is over (waitpid's status).
    void exited(int wait_status);

  private:
    struct Output {
        Output(OutputKind kind_of, Descriptor end, const asio::any_io_executor& executor)
            : kind(kind_of), descriptor(std::move(end)), room(executor) {}

        OutputKind kind;
        Descriptor descriptor;
        Notifier room;               // for its pump, while followers are behind or output is gathered
        Pace pace;
        bool done = false;           // at its end
        bool held_up = false;        // its pump waits for room
        bool gathers = false;        // its pump waits for more to read at once
        std::size_t must_drain = 0;  // bytes that were in it when the program ended
        [[nodiscard]] bool drained() const { return done || (must_drain == 0 && !held_up); }
    };

    enum class Taken { something, nothing_yet, its_end };

    static awaitable<void> pump(std::shared_ptr<Process> self, Output& output);
    Taken take(Output& output);
    void take_older(const Output& than);
    void answer_at_once();
    awaitable<void> gather(Output& output);
    static awaitable<void> finish(std::shared_ptr<Process> self);
    static awaitable<void> watch_deadline(std::shared_ptr<Process> self);
    void expire();
    awaitable<void> wait_for_room(Output& output);
    void publish(const EventPtr& event);
    void add_output(OutputKind kind, UniqueFd fd);

    asio::any_io_executor executor_;
    pid_t pid_;
    ::process::ProcessConfig config_;
    std::optional<std::string> tag_;
    Descriptor terminal_;
    std::shared_ptr<InputQueue> input_;
    std::vector<std::unique_ptr<Output>> outputs_;
    const Output* last_used_ = nullptr;  // where the program wrote last
    std::vector<std::shared_ptr<Subscriber>> subscribers_;
    std::optional<int> wait_status_;
    bool begun_ = false;
    bool timed_out_ = false;
    std::optional<Subscriber::Clock::time_point> deadline_;
    EventPtr end_;
    Notifier output_changed_;  // for finish()
    Notifier exit_;            // for watch_deadline()
    Subscriber::Clock::time_point last_output_;
    std::function<void()> on_end_;
};

}  // namespace gb::agent
