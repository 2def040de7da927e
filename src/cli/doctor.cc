// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with a host before a sandbox has to find out.
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <boost/url/parse.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/doctor_engine.h"
#include "cli/paths.h"
#include "cli/server_config.h"
#include "engine/cgroup.h"
#include "node/template_store.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
namespace json = boost::json;

struct DoctorOptions {
    NodeOptions node = default_node_options();
    fs::path config_file;
    bool json = false;
    bool engine = false;
};

Check user() {
    if (::geteuid() == 0) return {"user", Finding::good, "root"};
    return {"user", Finding::bad, "not root: machines, namespaces and control groups need it; run with sudo"};
}

Check program(const std::string& name, const std::vector<std::string>& argv, const std::string& package) {
    auto output = run(argv);
    if (!output || output->exit_code != 0)
        return {name, Finding::bad,
                fmt::format("{} does not run; install it with: apt-get install {}", argv[0], package)};
    std::string line = (output->out.empty() ? output->err : output->out);
    return {name, Finding::good, line.substr(0, line.find('\n'))};
}

Check device(const std::string& name, const char* path, Finding without, const std::string& advice) {
    auto fd = open_file(path, O_RDWR);
    if (fd) return {name, Finding::good, fmt::format("{} opens", path)};
    return {name, without, fmt::format("{}; {}", fd.error().message, advice)};
}

Check kvm() {
    auto fd = open_file("/dev/kvm", O_RDWR);
    if (fd) return {"kvm", Finding::good, "/dev/kvm opens"};
    constexpr const char* kSlow = "sandboxes are emulated in software, 5 to 12 times slower";
    if (fd.error().code == ErrorCode::permission_denied)
        return {"kvm", Finding::bad,
                fmt::format("/dev/kvm is there but may not be opened: run with sudo; else {}", kSlow)};
    if (fd.error().code == ErrorCode::not_found)
        return {"kvm", Finding::note,
                fmt::format(
                    "no /dev/kvm: {}; switch virtualisation on in the firmware or the cloud, then: modprobe "
                    "kvm_intel or kvm_amd",
                    kSlow)};
    return {"kvm", Finding::note, fmt::format("{}; {}", fd.error().message, kSlow)};
}

Check cgroups() {
    auto layout = engine::detect_cgroup_layout();
    if (!layout) return {"cgroups", Finding::bad, layout.error().message};
    std::string text = layout->version == engine::CgroupVersion::v2 ? "version 2" : "version 1";
    for (const auto& [controller, place] : layout->controllers) text += ", " + controller;
    if (!layout->has("cpu"))
        return {"cgroups", Finding::note,
                text + "; without cpu, busy sandboxes slow the others: boot with it enabled"};
    return {"cgroups", Finding::good, text};
}

Check memory(const NodeOptions& options) {
    auto available = available_memory_mib();
    if (!available) return {"memory", Finding::bad, available.error().message};
    const std::uint64_t mib = *available, needed = options.memory_reserve_mib + 1024;
    if (mib < needed)
        return {"memory", Finding::bad,
                fmt::format("{} MiB available, a sandbox of 1 GiB needs {}", mib, needed)};
    return {"memory", Finding::good, fmt::format("{} MiB available", mib)};
}

Check space(const char* name, fs::path place, std::uint64_t needed_gib) {
    const std::string wanted = place.string();
    std::error_code ec;
    while (!fs::exists(place, ec) && place.has_relative_path()) place = place.parent_path();
    struct statvfs st{};
    if (::statvfs(place.c_str(), &st) != 0)
        return {name, Finding::bad,
                fmt::format("{} cannot be looked at: {}", place.string(), std::strerror(errno))};
    return judge_space(name, {wanted, std::uint64_t{st.f_bavail} * st.f_frsize, st.f_files, st.f_favail},
                       needed_gib);
}

Check firewall() {
    auto rules = run({"nft", "-j", "list", "ruleset"});
    if (!rules) return {"firewall", Finding::note, rules.error().message};
    if (rules->exit_code != 0) return judge_unlisted_rules(rules->exit_code, rules->err);
    return judge_forwarding(dropping_forward_chains(rules->out));
}

std::optional<std::uint64_t> number_in(const char* file) {
    auto text = read_file(file);
    std::uint64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc())
        return std::nullopt;
    return value;
}

Check conntrack() {
    auto most = number_in("/proc/sys/net/netfilter/nf_conntrack_max");
    auto used = number_in("/proc/sys/net/netfilter/nf_conntrack_count");
    if (!most || !used) return {"conntrack", Finding::note, "not loaded yet; the first sandbox loads it"};
    return judge_conntrack(*most, *used);
}

Check open_files() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {"open files", Finding::note, std::strerror(errno)};
    return judge_open_files(limit.rlim_cur, limit.rlim_max);
}

Check clock() {
    std::error_code ec;
    const auto built = fs::last_write_time("/proc/self/exe", ec);
    const auto built_ms = ec ? std::int64_t{0}
                             : std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::file_clock::to_sys(built).time_since_epoch())
                                   .count();
    timex asked{};  // modes 0: only asks
    const int state = ::adjtimex(&asked);
    return judge_clock(now_ms(), built_ms, state != TIME_ERROR && state >= 0);
}

// Whether a program of this machine listens there: bound, not connected, so that nobody notices.
PortUse port_use(const std::string& address, std::uint16_t port, bool is_running_server) {
    asio::io_context io(1);
    boost::system::error_code ec;
    const asio::ip::tcp::endpoint where(asio::ip::make_address(address, ec), port);
    if (ec) return PortUse::unusable;
    asio::ip::tcp::acceptor acceptor(io);
    acceptor.open(where.protocol(), ec);
    acceptor.set_option(asio::socket_base::reuse_address(true), ec);
    acceptor.bind(where, ec);
    if (!ec) return PortUse::free;
    if (ec != asio::error::address_in_use) return PortUse::unusable;
    return is_running_server ? PortUse::ours : PortUse::others;
}

// The process that wrote server.json lives.
bool is_server_running(const NodeOptions& options, std::optional<std::uint16_t>& port) {
    auto text = read_file(server_file(options));
    boost::system::error_code ec;
    const json::value value = text ? json::parse(*text, ec) : json::value();
    const json::value* pid = value.is_object() ? value.get_object().if_contains("pid") : nullptr;
    const json::value* url = value.is_object() ? value.get_object().if_contains("url") : nullptr;
    if (pid == nullptr || !pid->is_int64() || url == nullptr || !url->is_string()) return false;
    auto parsed = boost::urls::parse_uri(std::string_view(url->get_string()));
    if (parsed && parsed->has_port()) port = parsed->port_number();
    return pid->get_int64() > 0 && (::kill(static_cast<pid_t>(pid->get_int64()), 0) == 0 || errno == EPERM);
}

Check wildcard(const std::string& domain) {
    const std::string name = "3000-doctor." + domain;
    asio::io_context io(1);
    asio::ip::tcp::resolver resolver(io);
    boost::system::error_code ec;
    auto found = resolver.resolve(name, "", ec);
    if (ec || found.empty())
        return {"domain", Finding::note,
                fmt::format("{} does not resolve from here: have *.{} point to this machine", name, domain)};
    return {"domain", Finding::good,
            fmt::format("*.{} leads to {}; see that this is here", domain,
                        found.begin()->endpoint().address().to_string())};
}

// The configuration and what follows from it.
void check_config(const DoctorOptions& options, std::vector<Check>& checks) {
    auto config = load_server_config(options.config_file);
    const auto pool = config ? warm_options(config->pool, std::nullopt) : Result<WarmOptions>(WarmOptions());
    const auto egress =
        config ? network_options(config->egress, std::nullopt) : Result<NetworkOptions>(NetworkOptions());
    if (!config || !pool || !egress) {
        checks.push_back({"config", Finding::bad,
                          (!config ? config.error()
                           : !pool ? pool.error()
                                   : egress.error())
                              .message});
        return;
    }
    checks.push_back(judge_resolvers(egress->resolvers, read_file("/etc/resolv.conf").value_or("")));
    checks.push_back({"config", Finding::good,
                      options.config_file.empty() ? "as in /etc/glovebox/config.toml, or the defaults"
                                                  : options.config_file.string() + " is read"});
    std::optional<std::uint16_t> running_port;
    const bool running = is_server_running(options.node, running_port);
    auto add_port = [&](const char* name, const std::string& address, std::uint16_t port, bool plain) {
        if (port == 0) return;
        const bool ours = running && (!plain || running_port == port);
        checks.push_back(judge_port(name, address, port, port_use(address, port, ours)));
    };
    add_port("port", config->address.value_or("127.0.0.1"), config->port.value_or(3000), true);
    if (config->tls) {
        add_port("tls port", config->tls->address, config->tls->port, false);
        auto chain = read_file(config->tls->certificate);
        auto key = read_file(config->tls->key);
        if (!chain || !key)
            checks.push_back({"certificate", Finding::bad, (chain ? key : chain).error().message});
        else
            checks.push_back(judge_certificate(*chain, *key, config->domain, now_ms()));
    }
    if (!config->domain.empty()) checks.push_back(wildcard(config->domain));
}

Check guest_programs(const NodeOptions& options) {
    for (const char* name : {"glovebox-init", "glovebox-agent", "glovebox-interpreter", "glovebox-entropy.node", "glovebox-probe"}) {
        std::error_code ec;
        if (!fs::is_regular_file(options.guest_dir / name, ec))
            return {"guest programs", Finding::bad,
                    fmt::format("{} is missing; build with `make build`, or name the folder with --guest-dir",
                                (options.guest_dir / name).string())};
    }
    return {"guest programs", Finding::good, options.guest_dir.string()};
}

Check templates(const NodeOptions& options) {
    TemplateStore store(options.templates());
    auto all = store.list();
    if (!all || all->empty())
        return {"templates", Finding::note, "none yet; run `glovebox template prepare`"};
    std::string text;
    for (const StoredTemplate& stored : *all)
        text += fmt::format("{}{} ({}: {})", text.empty() ? "" : ", ", stored.manifest.info.name,
                            engine::accelerator_name(stored.manifest.accelerator),
                            stored.manifest.accelerator_reason);
    return {"templates", Finding::good, text};
}

// Where the sources compile and sandboxes do not run yet, all that is missing is said, not only what is found first.
Check processor() {
    utsname name{};
    ::uname(&name);
    const std::string_view machine = name.machine;
    if (machine == "x86_64") return {"processor", Finding::good, "x86-64"};
    if (machine == "aarch64")
        return {"processor", Finding::bad,
                "arm64: the programs run, sandboxes do not yet. Missing: the command line of QEMU's machine 'virt' in place of "
                "'microvm', a guest kernel (linux-image-cloud-arm64) and root file systems of that architecture"};
    return {"processor", Finding::bad, fmt::format("{}: only x86-64 machines can run sandboxes", machine)};
}

int doctor(const DoctorOptions& options) {
    const NodeOptions& node = options.node;
    std::vector<Check> checks{
        processor(),
        user(),
        program("qemu", {"qemu-system-x86_64", "--version"}, "qemu-system-x86"),
        program("qemu-img", {"qemu-img", "--version"}, "qemu-utils"),
        program("nftables", {"nft", "--version"}, "nftables"),
        program("mmdebstrap", {"mmdebstrap", "--version"}, "mmdebstrap"),
        program("mke2fs", {"mke2fs", "-V"}, "e2fsprogs"),
        device("tun", "/dev/net/tun", Finding::bad, "load it with: modprobe tun"),
        kvm(),
        cgroups(),
        memory(node),
        open_files(),
        space("disk", node.data_dir, 10),
        space("cache", node.cache_dir, 3),
        firewall(),
        conntrack(),
        clock(),
    };
    check_config(options, checks);
    checks.push_back(guest_programs(node));
    checks.push_back(templates(node));
    bool bad = false;
    json::array list;
    for (const Check& check : checks) {
        bad = bad || check.finding == Finding::bad;
        const char* word = check.finding == Finding::good   ? "ok"
                           : check.finding == Finding::note ? "note"
                                                            : "BAD";
        if (options.json)
            list.push_back(json::object{{"name", check.name}, {"finding", word}, {"text", check.text}});
        else
            fmt::print("{:<5}{:<16}{}\n", word, check.name, check.text);
    }
    if (options.json) fmt::print("{}\n", json::serialize(list));
    return bad ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand("doctor", "Check whether this machine can run sandboxes");
    auto options = std::make_shared<DoctorOptions>();
    add_node_dirs(*command, options->node);
    command->add_option("--config", options->config_file,
                        "Configuration to check [/etc/glovebox/config.toml]");
    command->add_flag("--json", options->json, "As JSON");
    command->add_flag("--engine", options->engine,
                      "Boot, capture, restore, pause, resume and fork a small machine, and print a report of it");
    command->callback([&run, options] {
        run = [options] { return options->engine ? doctor_engine(options->node, options->json) : doctor(*options); };
    });
}

}  // namespace gb::cli
