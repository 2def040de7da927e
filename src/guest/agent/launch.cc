// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/launch.h"

#include <algorithm>

#include <sys/stat.h>

#include <fmt/format.h>
#include <unistd.h>

#include "guest/agent/paths.h"

namespace gb::agent {
namespace {

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

Status check(const ::process::ProcessConfig& config) {
    if (config.cmd().empty()) return fail(ErrorCode::invalid_argument, "process.cmd: empty");
    if (has_nul(config.cmd())) return fail(ErrorCode::invalid_argument, "process.cmd: holds a NUL byte");
    if (std::ranges::any_of(config.args(), has_nul))
        return fail(ErrorCode::invalid_argument, "process.args: holds a NUL byte");
    for (const auto& [name, value] : config.envs())
        if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value))
            return fail(ErrorCode::invalid_argument, fmt::format("process.envs: '{}' cannot be set", name));
    return {};
}

// One that the request names must be there; the default may be missing, as a system user's home often is.
Result<std::string> working_directory(const ::process::ProcessConfig& config, const Settings& settings,
                                      const User& user) {
    const std::string& base = base_folder(settings, user);
    struct stat st{};
    if (!config.cwd().empty()) {
        GB_TRY_ASSIGN(std::string cwd, resolve_path(config.cwd(), user.home, base));
        if (::stat(cwd.c_str(), &st) != 0)
            return fail(ErrorCode::invalid_argument, fmt::format("cwd '{}' does not exist", cwd));
        if (!S_ISDIR(st.st_mode))
            return fail(ErrorCode::invalid_argument, fmt::format("cwd '{}' is not a directory", cwd));
        return cwd;
    }
    for (const std::string& folder : {base, user.home})
        if (folder.starts_with('/') && ::stat(folder.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return folder;
    return "/";
}

}  // namespace

Environment process_environment(const Settings& settings, const User& user, const Environment& requested) {
    Environment env{
        {"PATH", settings.search_path}, {"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
    if (!user.shell.empty()) env["SHELL"] = user.shell;
    for (const auto& [name, value] : global_environment(settings)) env[name] = value;
    for (const auto& [name, value] : requested) env[name] = value;
    return env;
}

Result<Launch> prepare_launch(const ::process::StartRequest& request, const Settings& settings,
                              const User& user, const UserTable& users, const ProcessLimits& limits) {
    const ::process::ProcessConfig& config = request.process();
    GB_TRY(check(config));
    Launch launch;
    launch.config = config;
    if (request.has_tag()) launch.tag = request.tag();
    launch.with_stdin = request.stdin();
    Environment env =
        process_environment(settings, user, Environment(config.envs().begin(), config.envs().end()));
    if (request.has_pty()) {
        launch.terminal = TerminalSize{};
        if (request.pty().size().cols() > 0) launch.terminal->cols = request.pty().size().cols();
        if (request.pty().size().rows() > 0) launch.terminal->rows = request.pty().size().rows();
        const gid_t* tty = users.find_group("tty");
        launch.terminal_group = tty != nullptr ? *tty : user.gid;
        env.try_emplace("TERM", "xterm-256color");
    }

    SpawnRequest& spawn = launch.spawn;
    spawn.program = config.cmd();
    spawn.args.assign(config.args().begin(), config.args().end());
    spawn.search_path = env["PATH"];
    for (const auto& [name, value] : env) spawn.env.push_back(name + "=" + value);
    GB_TRY_ASSIGN(spawn.cwd, working_directory(config, settings, user));
    spawn.uid = user.uid;
    spawn.gid = user.gid;
    spawn.groups = users.groups_of(user);
    spawn.set_credentials = ::geteuid() == 0;
    if (!spawn.set_credentials && user.uid != ::geteuid())
        return fail(ErrorCode::permission_denied,
                    fmt::format("the agent does not run as root and cannot become '{}'", user.name));
    spawn.oom_score_adj = limits.oom_score_adj;
    spawn.reset_nice = limits.reset_nice;
    spawn.cgroup_fd = request.has_pty() ? limits.pty_cgroup_fd : limits.user_cgroup_fd;
    return launch;
}

}  // namespace gb::agent
