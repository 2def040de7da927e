// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/process_table.h"

#include <algorithm>
#include <array>
#include <ranges>

#include <sys/wait.h>

#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"

namespace gb::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kKeepEnded = std::chrono::seconds(30);  // contract 3.3
constexpr std::size_t kMaxEnded = 4096;                // ten thousand short commands must not pile up

struct Pipe {
    UniqueFd read, write;
};

Result<Pipe> make_pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe");
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// asio makes the agent's ends non-blocking; the ends of a pipe are separate open files, so the program's stay
// blocking.
struct Ends {
    ProcessStreams agent;
    UniqueFd standard_in, standard_out, standard_error;  // the program's
};

// Somebody else's pipe cannot be opened by its name in /proc, which is what `> /dev/stderr` does.
void give(const UniqueFd& end, const SpawnRequest& owner) {
    // Best effort: without root it is the agent's own user's already.
    if (owner.set_credentials && ::fchown(end.get(), owner.uid, owner.gid) != 0)
        log::debug("pipe not given away", {{"error", Error::from_errno(errno, "fchown").message}});
}

Result<Ends> make_ends(const Launch& launch) {
    Ends ends;
    if (launch.terminal) {
        GB_TRY_ASSIGN(Terminal terminal,
                      open_terminal(*launch.terminal, launch.spawn.uid, launch.terminal_group));
        ends.agent.terminal = std::move(terminal.master);
        ends.standard_in = std::move(terminal.slave);
        return ends;
    }
    GB_TRY_ASSIGN(Pipe out, make_pipe());
    GB_TRY_ASSIGN(Pipe err, make_pipe());
    ends.agent.standard_out = std::move(out.read);
    ends.standard_out = std::move(out.write);
    ends.agent.standard_error = std::move(err.read);
    ends.standard_error = std::move(err.write);
    give(ends.standard_out, launch.spawn);
    give(ends.standard_error, launch.spawn);
    if (launch.with_stdin) {
        GB_TRY_ASSIGN(Pipe in, make_pipe());
        ends.agent.standard_in = std::move(in.write);
        ends.standard_in = std::move(in.read);
        give(ends.standard_in, launch.spawn);
    } else {
        ends.standard_in.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!ends.standard_in) return fail_errno("open /dev/null");
    }
    return ends;
}

std::string describe(const ::process::ProcessSelector& selector) {
    if (selector.has_tag()) return fmt::format("process with tag {} not found", selector.tag());
    return fmt::format("process with pid {} not found", selector.pid());
}

bool matches(const Process& process, const ::process::ProcessSelector& selector) {
    if (selector.has_tag()) return process.tag() == selector.tag();
    return static_cast<std::uint32_t>(process.pid()) == selector.pid();
}

}  // namespace

struct ProcessTable::Impl : std::enable_shared_from_this<Impl> {
    Impl(asio::any_io_executor e, bool all) : executor(std::move(e)), reap_all(all), cleanup(executor) {}

    struct Ended {
        std::shared_ptr<Process> process;
        Clock::time_point until;
    };

    asio::any_io_executor executor;
    bool reap_all;
    // Until the exit status is collected. The value is null for one whose program could not be executed.
    std::unordered_map<pid_t, std::shared_ptr<Process>> alive;
    std::vector<std::shared_ptr<Process>> shown;  // begun, oldest first, until the end event is out
    std::deque<Ended> ended;                      // oldest first
    asio::steady_timer cleanup;

    void schedule_cleanup() {
        if (ended.empty()) return;
        cleanup.expires_at(ended.front().until);
        cleanup.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
            auto self = weak.lock();
            if (ec || !self) return;
            while (!self->ended.empty() && self->ended.front().until <= Clock::now()) self->ended.pop_front();
            self->schedule_cleanup();
        });
    }

    void collect(pid_t pid, int status) {
        auto it = alive.find(pid);
        if (it == alive.end()) return;
        const std::shared_ptr<Process> process = std::move(it->second);
        alive.erase(it);
        if (process) process->exited(status);
    }
};

ProcessTable::ProcessTable(asio::any_io_executor executor, bool reap_all)
    : impl_(std::make_shared<Impl>(std::move(executor), reap_all)) {}

ProcessTable::~ProcessTable() {
    impl_->cleanup.cancel();
}

awaitable<Result<std::shared_ptr<Process>>> ProcessTable::start(Launch launch) {
    const std::shared_ptr<Impl> impl = impl_;
    GB_CO_TRY_ASSIGN(Ends ends, make_ends(launch));
    const bool terminal = launch.terminal.has_value();
    launch.spawn.stdin_fd = ends.standard_in.get();
    launch.spawn.stdout_fd = terminal ? ends.standard_in.get() : ends.standard_out.get();
    launch.spawn.stderr_fd = terminal ? ends.standard_in.get() : ends.standard_error.get();
    launch.spawn.controlling_terminal = terminal;
    GB_CO_TRY_ASSIGN(Spawned spawned, spawn(launch.spawn));
    // The program's ends must go now: as long as the agent holds them there is no end of file.
    ends.standard_in.reset();
    ends.standard_out.reset();
    ends.standard_error.reset();

    // Known before anything is awaited, so that its exit status finds it.
    auto process = std::make_shared<Process>(impl->executor, spawned.pid, std::move(launch.config),
                                             std::move(launch.tag), std::move(ends.agent));
    impl->alive[spawned.pid] = process;

    asio::posix::stream_descriptor report(impl->executor, spawned.report.release());
    std::array<char, kReportSize> bytes{};
    auto [ec, n] = co_await asio::async_read(report, asio::buffer(bytes), kErrorTuple);
    if (n > 0) {
        if (auto it = impl->alive.find(spawned.pid); it != impl->alive.end() && it->second == process)
            it->second = nullptr;
        co_return std::unexpected(spawn_failure(std::string_view(bytes.data(), n), launch.spawn));
    }
    impl->shown.push_back(process);
    co_return process;
}

void ProcessTable::retire(const std::shared_ptr<Process>& process) {
    std::erase(impl_->shown, process);
    impl_->ended.push_back({process, Clock::now() + kKeepEnded});
    if (impl_->ended.size() > kMaxEnded) impl_->ended.pop_front();
    if (impl_->ended.size() == 1) impl_->schedule_cleanup();
}

std::vector<std::shared_ptr<Process>> ProcessTable::running() const {
    std::vector<std::shared_ptr<Process>> out;
    for (const auto& process : impl_->shown)
        if (process->is_running()) out.push_back(process);
    return out;
}

Result<std::shared_ptr<Process>> ProcessTable::find_running(
    const ::process::ProcessSelector& selector) const {
    for (const auto& process : impl_->shown | std::views::reverse)
        if (process->is_running() && matches(*process, selector)) return process;
    return fail(ErrorCode::not_found, describe(selector));
}

Result<std::shared_ptr<Process>> ProcessTable::find(const ::process::ProcessSelector& selector) const {
    for (const auto& process : impl_->shown | std::views::reverse)
        if (matches(*process, selector)) return process;
    for (const auto& ended : impl_->ended | std::views::reverse)
        if (matches(*ended.process, selector)) return ended.process;
    return fail(ErrorCode::not_found, describe(selector));
}

void ProcessTable::reap() {
    int status = 0;
    if (impl_->reap_all) {
        while (true) {
            const pid_t pid = ::waitpid(-1, &status, WNOHANG);
            if (pid <= 0) return;
            impl_->collect(pid, status);
        }
    }
    // Other children of this program are somebody else's to wait for.
    std::vector<pid_t> pids;
    for (const auto& [pid, process] : impl_->alive) pids.push_back(pid);
    for (const pid_t pid : pids)
        if (::waitpid(pid, &status, WNOHANG) == pid) impl_->collect(pid, status);
}

}  // namespace gb::agent
