// SPDX-License-Identifier: Apache-2.0
#include "cli/child_server.h"

#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/paths.h"

namespace gb::cli {
namespace {

// Only what is allowed between fork() and exec().
[[noreturn]] void become_server(char* const* argv, int out, int err, pid_t parent) {
    ::setpgid(0, 0);  // Ctrl-C is the owner's to hear
    ::prctl(PR_SET_PDEATHSIG, SIGINT);
    if (::getppid() != parent) ::_exit(1);  // it died before it could be told
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(1);
    ::execv("/proc/self/exe", argv);
    ::_exit(127);
}

std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Result<ChildServer> ChildServer::start(const Options& options) {
    ChildServer server;
    server.data_dir_ = options.data_dir;
    server.log_ = options.log;
    const std::filesystem::path config = options.data_dir / "config.toml";
    GB_TRY(write_file_atomic(config, ""));
    std::vector<std::string> arguments{"glovebox",        "serve",
                                       "--port",          "0",
                                       "--listen",        "127.0.0.1",
                                       "--data-dir",      options.data_dir.string(),
                                       "--templates-dir", options.templates_dir.string(),
                                       "--config",        config.string()};
    arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);

    GB_TRY_ASSIGN(UniqueFd log, open_file(options.log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
    server.output_.reset(ends[0]);
    UniqueFd out(ends[1]);
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return fail_errno("set up a pipe");
    const pid_t self = ::getpid();
    server.pid_ = ::fork();
    if (server.pid_ < 0) return fail_errno("start the server");
    if (server.pid_ == 0) become_server(argv.data(), out.get(), log.get(), self);
    return server;
}

ChildServer::ChildServer(ChildServer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      data_dir_(std::move(other.data_dir_)),
      log_(std::move(other.log_)) {}

ChildServer::~ChildServer() {
    stop();
}

Result<ServerAddress> ChildServer::address_from(std::string_view output) const {
    constexpr std::string_view kReady = "glovebox is ready on ";
    if (!output.starts_with(kReady)) {
        const std::string why = last_line(read_file(log_).value_or(""));
        return fail(ErrorCode::unavailable,
                    fmt::format("the server did not start: {}", why.empty() ? "it said nothing" : why));
    }
    NodeOptions node;
    node.data_dir = data_dir_;
    return find_local_server(node);
}

void ChildServer::stop(const std::function<void()>& waiting) {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGINT);
    for (;;) {
        const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
        if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
        if (waiting) waiting();
        ::usleep(20'000);
    }
    pid_ = -1;
}

}  // namespace gb::cli
