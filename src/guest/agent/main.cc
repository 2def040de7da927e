// SPDX-License-Identifier: Apache-2.0
// glovebox-agent: PID 1 of a sandbox (--init), or an ordinary program that serves the same API (for tests).
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <boost/asio/signal_set.hpp>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "guest/agent/agent.h"
#include "guest/agent/machine.h"
#include "guest/agent/system_setup.h"

namespace gb::agent {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kUsage = R"(usage: glovebox-agent [options]
  --init               be PID 1: mount, bring up the network, bury orphans, never end
  --port N             listen on this port (49983; 0 picks a free one)
  --listen ADDRESS     listen on this address (0.0.0.0)
  --control-peer ADDR  who may call /init (with --init: glovebox.gw of the kernel command line)
  --allow-local-init   programs on this machine may call /init
  --default-user NAME  who runs what names no user (root with --init, else the one that runs this)
  --state-dir DIR      where generation and envs.json go (/run/glovebox with --init, else nowhere)
)";

struct Arguments {
    bool init = false;
    asio::ip::tcp::endpoint listen{asio::ip::address_v4::any(), 49983};
    AgentOptions options;
};

std::string own_name() {
    UserCache users;
    return users.get()->user_name(::geteuid());
}

Result<asio::ip::address> parse_address(std::string_view flag, const std::string& text) {
    boost::system::error_code ec;
    const asio::ip::address address = asio::ip::make_address(text, ec);
    if (ec) return fail(ErrorCode::invalid_argument, std::string(flag) + ": not an address: " + text);
    return address;
}

Result<unsigned short> parse_port(const std::string& text) {
    unsigned short port = 0;
    auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (ec != std::errc{} || stop != text.data() + text.size())
        return fail(ErrorCode::invalid_argument, "--port: not a port: " + text);
    return port;
}

Result<Arguments> parse_arguments(int argc, char** argv) {
    Arguments arguments;
    AgentOptions& options = arguments.options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view flag = argv[i];
        if (flag == "--init") {
            arguments.init = true;
            continue;
        }
        if (flag == "--allow-local-init") {
            options.allow_local_init = true;
            continue;
        }
        if (i + 1 >= argc)
            return fail(ErrorCode::invalid_argument, std::string(flag) + ": unknown, or without a value");
        const std::string value = argv[++i];
        if (flag == "--port") {
            GB_TRY_ASSIGN(const unsigned short port, parse_port(value));
            arguments.listen.port(port);
        } else if (flag == "--listen") {
            GB_TRY_ASSIGN(const asio::ip::address address, parse_address(flag, value));
            arguments.listen.address(address);
        } else if (flag == "--control-peer") {
            GB_TRY_ASSIGN(options.control_peer, parse_address(flag, value));
        } else if (flag == "--default-user") {
            options.settings.default_user = value;
        } else if (flag == "--state-dir") {
            options.state_dir = value;
        } else {
            return fail(ErrorCode::invalid_argument, "unknown option " + std::string(flag));
        }
    }
    if (options.settings.default_user.empty())
        options.settings.default_user = arguments.init ? "root" : own_name();
    if (arguments.init && options.state_dir.empty()) options.state_dir = "/run/glovebox";
    if (const char* path = std::getenv("PATH"); path != nullptr && !arguments.init)
        options.settings.search_path = path;
    return arguments;
}

// Pipes of processes must not land on 0, 1 or 2.
void ensure_standard_descriptors(bool init) {
    for (int fd = 0; fd < 3; ++fd) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        if (!init || ::open("/dev/console", fd == 0 ? O_RDONLY : O_WRONLY) < 0) ::open("/dev/null", O_RDWR);
    }
}

void set_up_machine(AgentOptions& options, Cgroups& cgroups) {
    mount_file_systems(options.state_dir);
    ensure_standard_descriptors(true);
    protect_agent();
    set_kernel_limits();
    if (const Status named = set_hostname("glovebox"); !named)
        log::warn("host name", {{"error", named.error().message}});
    const auto plan = parse_network_plan(read_file("/proc/cmdline").value_or(""));
    const Status network = plan ? set_up_network(*plan) : std::unexpected(plan.error());
    if (!network) log::error("network", {{"error", network.error().message}});
    if (plan && *plan && !options.control_peer && !(*plan)->gateway.empty())
        options.control_peer = asio::ip::make_address((*plan)->gateway);
    cgroups = set_up_cgroups();
    options.owns_machine = true;
    options.trust_root = "/";
    options.limits = {.oom_score_adj = 100,
                      .reset_nice = true,
                      .user_cgroup_fd = cgroups.user.get(),
                      .pty_cgroup_fd = cgroups.pty.get()};
}

// An exception that reaches this far has cost one connection. PID 1 goes on: its end is the machine's.
void run_for_ever(asio::io_context& context, bool init) {
    for (;;) {
        try {
            context.run();
            if (!init) return;
            context.restart();
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        } catch (const std::exception& failure) {
            log::error("unexpected failure", {{"error", failure.what()}});
            if (!init) throw;
        }
    }
}

int serve(Arguments arguments) {
    ensure_standard_descriptors(arguments.init);
    ::signal(SIGPIPE, SIG_IGN);
    Cgroups cgroups;
    if (arguments.init) set_up_machine(arguments.options, cgroups);
    asio::io_context context(1);
    Agent agent(context, std::move(arguments.options));
    auto listening = agent.listen(arguments.listen);
    while (!listening && arguments.init) {
        log::error("cannot listen", {{"error", listening.error().message}});
        std::this_thread::sleep_for(std::chrono::seconds(1));
        listening = agent.listen(arguments.listen);
    }
    if (!listening) {
        std::fprintf(stderr, "glovebox-agent: %s\n", listening.error().message.c_str());
        return 1;
    }
    asio::signal_set stop(context);
    if (!arguments.init) {
        stop.add(SIGINT);
        stop.add(SIGTERM);
        stop.async_wait([&context](const boost::system::error_code& ec, int) {
            if (!ec) context.stop();
        });
    }
    std::printf("glovebox-agent: ready\n");
    if (!arguments.init)
        std::printf("listening on %s:%u\n", listening->address().to_string().c_str(),
                    unsigned{listening->port()});
    std::fflush(stdout);
    run_for_ever(context, arguments.init);
    return 0;
}

}  // namespace
}  // namespace gb::agent

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--help") {
        std::fwrite(gb::agent::kUsage.data(), 1, gb::agent::kUsage.size(), stdout);
        return 0;
    }
    auto arguments = gb::agent::parse_arguments(argc, argv);
    if (!arguments) {
        std::fprintf(stderr, "glovebox-agent: %s\n%.*s", arguments.error().message.c_str(),
                     static_cast<int>(gb::agent::kUsage.size()), gb::agent::kUsage.data());
        return 2;
    }
    return gb::agent::serve(*std::move(arguments));
}
