// SPDX-License-Identifier: Apache-2.0
#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <sys/wait.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/process_watch.h"
#include "base/unique_fd.h"

extern char** environ;

namespace gb {
namespace {

struct Pipe {
    UniqueFd read, write;
};

Result<Pipe> make_pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return fail_errno("pipe");
    return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
    out.push_back(nullptr);
    return out;
}

// The child must not keep what the parent blocks or ignores: a server that ignores SIGPIPE would pass that on.
void set_signals(posix_spawnattr_t& attr) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attr, 0);
}

class LineSplitter {
  public:
    explicit LineSplitter(const std::function<void(std::string_view)>& sink) : sink_(sink) {}
    void feed(std::string_view data) {
        if (!sink_) return;
        for (char c : data) {
            if (c == '\n' || c == '\r') {
                if (!line_.empty()) sink_(line_);
                line_.clear();
            } else if (line_.size() < 4096) {
                line_.push_back(c);
            }
        }
    }

  private:
    const std::function<void(std::string_view)>& sink_;
    std::string line_;
};

}  // namespace

Result<RunOutput> run(const std::vector<std::string>& argv, const RunOptions& options) {
    if (argv.empty()) return fail(ErrorCode::invalid_argument, "no program given");
    GB_TRY_ASSIGN(Pipe in, make_pipe());
    GB_TRY_ASSIGN(Pipe out, make_pipe());
    GB_TRY_ASSIGN(Pipe err, make_pipe());

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in.read.get(), 0);
    posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
    if (!options.inherit_stderr) posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
    if (!options.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.cwd.c_str());
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    set_signals(attr);

    std::vector<std::string> env;
    for (char** e = environ; *e != nullptr; ++e) env.emplace_back(*e);
    env.insert(env.end(), options.extra_env.begin(), options.extra_env.end());
    pid_t pid = -1;
    int rc = ::posix_spawnp(&pid, argv[0].c_str(), &actions, &attr, pointers(argv).data(), pointers(env).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc != 0) return fail_errno(rc, fmt::format("start {}", argv[0]));
    in.read.reset();
    out.write.reset();
    err.write.reset();

    RunOutput output;
    LineSplitter splitter(options.on_stderr_line);
    std::string_view to_write = options.stdin_data;
    if (to_write.empty()) in.write.reset();
    if (in.write) ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
    StallLimit limit(options.timeout);
    ProcessWatch watch(pid, Family::with_descendants);
    auto is_over = [&] {
        if (watch.moved()) limit.moved();
        return options.stop.stop_requested() || limit.over();
    };
    bool timed_out = false;
    char buffer[65536];
    auto read_some = [&](UniqueFd& fd, std::string& sink, bool split) {
        ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n <= 0) {
            if (n == 0 || errno != EINTR) fd.reset();
            return;
        }
        std::string_view data(buffer, static_cast<std::size_t>(n));
        if (split) splitter.feed(data);
        sink.append(data.substr(0, std::min(data.size(), options.max_output - std::min(options.max_output, sink.size()))));
    };
    while (out.read || err.read) {
        pollfd fds[3] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {in.write.get(), POLLOUT, 0}};
        const int ready = ::poll(fds, 3, static_cast<int>(limit.next_look().count()));
        if (ready < 0 && errno != EINTR) break;
        if (ready > 0) limit.moved();
        if ((timed_out = is_over())) break;
        if (fds[0].revents != 0) read_some(out.read, output.out, false);
        if (fds[1].revents != 0) read_some(err.read, output.err, true);
        if (fds[2].revents != 0) {
            ssize_t n = ::write(in.write.get(), to_write.data(), to_write.size());
            if (n > 0) to_write.remove_prefix(static_cast<std::size_t>(n));
            if ((n < 0 && errno != EAGAIN && errno != EINTR) || to_write.empty()) in.write.reset();
        }
    }
    in.write.reset();
    // The program may close its outputs and go on: its own end is what counts, within the same limit.
    int status = 0;
    for (;;) {
        if (timed_out) {
            // What has left its group too: it would go on for nobody.
            const std::vector<pid_t> all = descendants(pid);
            ::kill(-pid, SIGKILL);
            for (pid_t one : all) ::kill(one, SIGKILL);
        }
        pid_t got = ::waitpid(pid, &status, timed_out ? 0 : WNOHANG);
        if (got == pid) break;
        if (got < 0 && errno != EINTR) return fail_errno(fmt::format("wait for {}", argv[0]));
        timed_out = is_over();
        if (!timed_out) ::usleep(500);
    }
    if (timed_out && options.stop.stop_requested())
        return fail(ErrorCode::canceled, fmt::format("{} was given up", argv[0]));
    if (timed_out) return limit.error(argv[0]);
    output.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return output;
}

Result<RunOutput> run_checked(const std::vector<std::string>& argv, const RunOptions& options) {
    GB_TRY_ASSIGN(RunOutput output, run(argv, options));
    if (output.exit_code == 0) return output;
    std::string tail = output.err.size() > 600 ? "…" + output.err.substr(output.err.size() - 600) : output.err;
    while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
    return fail(ErrorCode::internal, fmt::format("{} ended with code {}: {}", argv[0], output.exit_code, tail));
}

}  // namespace gb
