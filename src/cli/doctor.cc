// Says what is wrong with a host before a sandbox has to find out.
#include <fcntl.h>
#include <unistd.h>

#include <sys/statvfs.h>

#include <filesystem>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "base/host_memory.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "engine/cgroup.h"
#include "node/template_store.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;
enum class Finding { good, note, bad };

struct Check {
    std::string name;
    Finding finding;
    std::string text;  // what was found, and what to do about it
};

Check user() {
    if (::geteuid() == 0) return {"user", Finding::good, "root"};
    return {"user", Finding::bad, "not root: machines, namespaces and control groups need it; run with sudo"};
}

Check program(const std::string& name, const std::vector<std::string>& argv, const std::string& package) {
    auto output = run(argv);
    if (!output || output->exit_code != 0)
        return {name, Finding::bad, fmt::format("{} does not run; install it with: apt-get install {}", argv[0], package)};
    std::string line = (output->out.empty() ? output->err : output->out);
    return {name, Finding::good, line.substr(0, line.find('\n'))};
}

Check device(const std::string& name, const char* path, Finding without, const std::string& advice) {
    auto fd = open_file(path, O_RDWR);
    if (fd) return {name, Finding::good, fmt::format("{} opens", path)};
    return {name, without, fmt::format("{}; {}", fd.error().message, advice)};
}

Check cgroups() {
    auto layout = engine::detect_cgroup_layout();
    if (!layout) return {"cgroups", Finding::bad, layout.error().message};
    return {"cgroups", Finding::good,
            layout->version == engine::CgroupVersion::v2 ? "version 2, memory and pids" : "version 1, memory and pids"};
}

Check memory(const NodeOptions& options) {
    auto available = available_memory_mib();
    if (!available) return {"memory", Finding::bad, available.error().message};
    const std::uint64_t mib = *available, needed = options.memory_reserve_mib + 1024;
    if (mib < needed)
        return {"memory", Finding::bad, fmt::format("{} MiB available, a sandbox of 1 GiB needs {}", mib, needed)};
    return {"memory", Finding::good, fmt::format("{} MiB available", mib)};
}

Check disk(const NodeOptions& options) {
    fs::path place = options.data_dir;
    std::error_code ec;
    while (!fs::exists(place, ec) && place.has_relative_path()) place = place.parent_path();
    struct statvfs st{};
    if (::statvfs(place.c_str(), &st) != 0) return {"disk", Finding::bad, place.string() + " cannot be looked at"};
    const std::uint64_t gib = (std::uint64_t{st.f_bavail} * st.f_frsize) >> 30;
    std::string text = fmt::format("{} GiB free for {}", gib, options.data_dir.string());
    if (gib < 10) return {"disk", Finding::bad, text + "; templates and sandboxes need 10 or more"};
    return {"disk", Finding::good, text};
}

Check guest_programs(const NodeOptions& options) {
    for (const char* name : {"glovebox-init", "glovebox-agent", "glovebox-interpreter"}) {
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
                            engine::accelerator_name(stored.manifest.accelerator), stored.manifest.accelerator_reason);
    return {"templates", Finding::good, text};
}

int doctor(const NodeOptions& options, bool as_json) {
    std::vector<Check> checks{
        user(),
        program("qemu", {"qemu-system-x86_64", "--version"}, "qemu-system-x86"),
        program("qemu-img", {"qemu-img", "--version"}, "qemu-utils"),
        program("nftables", {"nft", "--version"}, "nftables"),
        program("mmdebstrap", {"mmdebstrap", "--version"}, "mmdebstrap"),
        program("mke2fs", {"mke2fs", "-V"}, "e2fsprogs"),
        device("tun", "/dev/net/tun", Finding::bad, "load it with: modprobe tun"),
        device("kvm", "/dev/kvm", Finding::note, "sandboxes are emulated in software, 5 to 12 times slower"),
        cgroups(),
        memory(options),
        disk(options),
        guest_programs(options),
        templates(options),
    };
    bool bad = false;
    boost::json::array list;
    for (const Check& check : checks) {
        bad = bad || check.finding == Finding::bad;
        const char* word = check.finding == Finding::good ? "ok" : check.finding == Finding::note ? "note" : "BAD";
        if (as_json)
            list.push_back(boost::json::object{{"name", check.name}, {"finding", word}, {"text", check.text}});
        else
            fmt::print("{:<5}{:<16}{}\n", word, check.name, check.text);
    }
    if (as_json) fmt::print("{}\n", boost::json::serialize(list));
    return bad ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand("doctor", "Check whether this machine can run sandboxes");
    auto options = std::make_shared<NodeOptions>(default_node_options());
    auto json = std::make_shared<bool>(false);
    add_node_dirs(*command, *options);
    command->add_flag("--json", *json, "As JSON");
    command->callback([&run, options, json] { run = [options, json] { return doctor(*options, *json); }; });
}

}  // namespace gb::cli
