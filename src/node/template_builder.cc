#include "node/template_builder.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "engine/microvm/accelerator_probe.h"
#include "engine/microvm/command_line.h"
#include "engine/microvm/overlay.h"
#include "image/command_line.h"
#include "image/initramfs.h"
#include "image/kernel.h"
#include "image/rootfs.h"
#include "net/slot.h"
#include "node/agent_client.h"
#include "node/guest_link.h"

namespace gb {
namespace fs = std::filesystem;

namespace {

using image::Progress;
using image::ProgressFn;

constexpr int kKeyFormat = 1;  // goes up when something that is not in the key's text changes captures
constexpr std::chrono::minutes kBootLimit{4};
constexpr std::chrono::minutes kReadyLimit{5};

// Building the images is most of the way; the rest of the bar belongs to boot and capture.
constexpr double kImageShare = 0.8;

class Steps {
  public:
    explicit Steps(const ProgressFn& sink) : sink_(sink), started_ms_(monotonic_ms()) {}
    void say(std::string step, double fraction, std::string detail = {}) const {
        if (!sink_) return;
        if (detail.empty()) detail = fmt::format("{} s", (monotonic_ms() - started_ms_) / 1000);
        sink_({std::move(step), fraction, std::move(detail)});
    }
    [[nodiscard]] ProgressFn part(double from, double to) const {
        return [this, from, to](const Progress& p) { say(p.step, from + (to - from) * p.fraction, p.detail); };
    }

  private:
    const ProgressFn& sink_;
    std::int64_t started_ms_;
};

Status wait_until_ready(const AgentClient& agent, const std::string& command, const RunningCommand* started,
                        const Steps& steps) {
    if (command.empty()) return {};
    const std::int64_t deadline = monotonic_ms() + std::chrono::milliseconds(kReadyLimit).count();
    std::string last = "it was never run";
    while (monotonic_ms() < deadline) {
        auto result = agent.run(command, "root", std::chrono::seconds(60));
        if (result && result->exit_code == 0) return {};
        last = result ? fmt::format("exit code {}: {}", result->exit_code, result->err.substr(0, 300))
                      : result.error().message;
        if (started != nullptr && started->exit_code().value_or(0) != 0)
            return fail(ErrorCode::failed_precondition,
                        fmt::format("the start command ended with code {}; it printed: {}", *started->exit_code(),
                                    started->output()));
        steps.say("wait until it is ready", 0.9);
        ::usleep(1'500'000);  // each try costs an emulated guest what it needs to get ready
    }
    return fail(ErrorCode::deadline_exceeded,
                fmt::format("the ready command '{}' did not succeed within {} minutes; last: {}; the start command printed: {}",
                            command, kReadyLimit.count(), last, started != nullptr ? started->output() : "nothing"));
}

// Each program once before the freeze, so that its pages are in the guest's page cache.
Status exercise(const AgentClient& agent) {
    for (const char* command : {"true", "sudo -n true", "ls -la ~ > /dev/null", "python3 -c pass", "git --version"}) {
        GB_TRY_ASSIGN(CommandResult result, agent.run(command, "user", std::chrono::seconds(120)));
        if (result.exit_code != 0)
            return fail(ErrorCode::internal, fmt::format("'{}' ended with {} in the new template: {}", command,
                                                         result.exit_code, result.err.substr(0, 300)));
    }
    return {};
}

// A copy that every machine may read.
Status keep(const fs::path& from, const fs::path& to) {
    GB_TRY(copy_file_sparse(from, to, 0444));
    std::error_code ec;
    fs::permissions(to, fs::perms(0444), ec);  // whatever the umask is
    return ec ? Status(fail_errno(ec.value(), "chmod " + to.string())) : Status();
}

// Other builds of the same name, and what builders that were killed left. Machines that still run from a build keep
// its files open.
void remove_older(const fs::path& folder, const TemplateInfo& keep) {
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec)) {
        if (entry.path().filename() == keep.build_id) continue;
        auto text = read_file(entry.path() / "manifest.json");
        auto manifest = text ? parse_manifest(*text) : Result<Manifest>(std::unexpected(text.error()));
        bool abandoned = entry.path().filename().string().starts_with(".build-");
        if (abandoned || (manifest && manifest->info.name == keep.name)) (void)remove_tree(entry.path());
    }
}

}  // namespace

struct TemplateBuilder::Inputs {
    image::TemplateDefinition definition;
    image::RootfsImage rootfs;
    image::GuestKernel kernel;
    fs::path initrd;
    engine::AcceleratorChoice accelerator;
    std::string command_line;
    std::string key;
};

TemplateBuilder::TemplateBuilder(NodeOptions options)
    : options_(std::move(options)), store_(options_.templates()) {}

TemplateBuilder::~TemplateBuilder() = default;

Status TemplateBuilder::open() {
    if (machinery_) return {};
    GB_TRY(make_dirs(store_.folder()));
    // A server may run in the data folder: builders have one of their own in it, one builder at a time.
    const fs::path folder = options_.data_dir / "builder";
    GB_TRY_ASSIGN(lock_, lock_folder(folder, Busy::wait));
    GB_TRY_ASSIGN(std::string instance, instance_of(folder));
    GB_TRY_ASSIGN(Machinery machinery, open_machinery(folder, instance));
    machinery_ = std::make_unique<Machinery>(std::move(machinery));
    return {};
}

Result<TemplateBuilder::Inputs> TemplateBuilder::gather(const std::string& name, const ProgressFn& progress) {
    Steps steps(progress);
    Inputs in;
    GB_TRY_ASSIGN(in.definition, image::load_definition(options_.images_dir, name));
    GB_TRY_ASSIGN(in.rootfs, image::build_rootfs(in.definition, options_.cache_dir, steps.part(0, kImageShare - 0.1)));
    GB_TRY_ASSIGN(in.kernel, image::prepare_kernel(options_.cache_dir, steps.part(kImageShare - 0.1, kImageShare)));
    GB_TRY(open());

    std::vector<image::GuestFile> files{{options_.guest_dir / "glovebox-agent", "glovebox-agent"}};
    if (in.definition.start_cmd.find("glovebox-interpreter") != std::string::npos)
        for (const char* name : {"glovebox-interpreter", "glovebox-entropy.node"})
            files.push_back({options_.guest_dir / name, name});
    GB_TRY(make_dirs(options_.data_dir / "builder"));
    in.initrd = options_.data_dir / "builder" / fmt::format("initrd-{}.img", name);
    GB_TRY(image::build_initramfs(in.kernel, options_.guest_dir / "glovebox-init", files, in.initrd));

    image::CommandLine hardware;
    hardware.extra = {fmt::format("glovebox.ip={}/30", kGuestAddress), fmt::format("glovebox.gw={}", kGuestGateway)};
    engine::ProbeOptions probe;
    probe.kernel = {in.kernel.vmlinuz, in.initrd, image::kernel_command_line(hardware)};
    probe.jail.uid = machine_uid(machinery_->network->tag(), 4095);
    probe.jail.gid = probe.jail.uid;
    probe.jail.cgroup_name = "probe";
    probe.state_folder = options_.data_dir / "builder";
    steps.say("look for hardware virtualisation", kImageShare);
    in.accelerator = engine::probe_accelerator(*machinery_->engine, probe);
    image::CommandLine line = hardware;
    if (in.accelerator.accelerator == engine::Accelerator::tcg) {
        line.processor = image::Processor::emulated;
        line.tsc_khz = image::measure_tsc_khz();
    }
    in.command_line = image::kernel_command_line(line);

    GB_TRY_ASSIGN(std::string initrd, read_file(in.initrd));
    const image::TemplateDefinition& d = in.definition;
    std::string text = fmt::format(
        "{}\n{}\n{}\n{}\n{} {} {}\n{}\n{}\n{}\n{}\n{}\n{}\n", kKeyFormat, in.rootfs.hash, in.kernel.version,
        sha256_hex(initrd), d.cpu_count, d.memory_mib, d.disk_mib, d.start_cmd, d.ready_cmd, d.default_user, d.workdir,
        engine::accelerator_name(in.accelerator.accelerator), machinery_->engine->vmm_root().id);
    text += engine::default_cpu_model(in.accelerator.accelerator) + "\n";
    for (const auto& [key, value] : d.env) text += fmt::format("{}={}\n", key, value);
    in.key = sha256_hex(text);
    return in;
}

Status TemplateBuilder::capture(const Inputs& in, Manifest& manifest, const fs::path& folder, const ProgressFn& progress) {
    Steps steps(progress);
    StoredTemplate files{manifest, folder};
    steps.say("copy the disk", kImageShare);
    GB_TRY(copy_file_sparse(in.rootfs.file, files.disk(), 0600));
    std::error_code ec;
    const std::uint64_t disk_bytes = fs::file_size(files.disk(), ec);
    if (ec) return fail_errno(ec.value(), "size of " + files.disk().string());

    GB_TRY_ASSIGN(std::unique_ptr<net::Slot> slot, net::Slot::create(*machinery_->network));
    engine::MachineSpec spec;
    spec.jail.uid = spec.jail.gid = machine_uid(machinery_->network->tag(), slot->number());
    spec.jail.netns_fd = slot->netns_fd();
    spec.jail.cgroup_name = manifest.info.build_id;
    spec.cpu_count = static_cast<unsigned>(in.definition.cpu_count);
    spec.memory_mib = static_cast<unsigned>(in.definition.memory_mib);
    spec.kernel = {in.kernel.vmlinuz, in.initrd, in.command_line};
    spec.disk = {files.disk(), engine::DiskFormat::raw, {}};
    spec.memory = {files.memory(), engine::MemoryMapping::shared};
    spec.tap = slot->take_tap();
    spec.mac = guest_mac();
    spec.accelerator = in.accelerator.accelerator;
    steps.say("boot", kImageShare + 0.02);
    GB_TRY_ASSIGN(std::unique_ptr<engine::Machine> machine, machinery_->engine->boot(std::move(spec)));

    AgentClient agent = guest_link(*slot);
    auto with_console = [&](Status status) -> Status {
        if (status) return {};
        std::string console = machine->console_tail();
        if (console.size() > 1500) console = "…" + console.substr(console.size() - 1500);
        return std::unexpected(status.error().with(fmt::format("template '{}' (its console ends with: {})",
                                                               manifest.info.name, console)));
    };
    GB_TRY(with_console(agent.wait_ready(kBootLimit)));
    GuestIdentity identity;
    identity.sandbox_id = "template";
    identity.template_id = manifest.info.id;
    identity.default_user = manifest.default_user;
    identity.workdir = manifest.workdir;
    identity.env_vars = manifest.env;
    GB_TRY(with_console(agent.init(identity, std::chrono::seconds(60))));
    auto marked = agent.run(fmt::format("printf 'ENV_ID=%s\\nTEMPLATE_ID=%s\\nBUILD_ID=%s\\n' {0} {0} {1} > /.e2b",
                                        manifest.info.id, manifest.info.build_id),
                            "root", std::chrono::seconds(60));
    if (!marked) return std::unexpected(marked.error());
    std::unique_ptr<RunningCommand> started;
    if (!in.definition.start_cmd.empty()) {
        steps.say("run the start command", 0.88);
        auto command = agent.start(in.definition.start_cmd, "root", "start");
        if (!command) return with_console(std::unexpected(command.error()));
        started = *std::move(command);
    }
    GB_TRY(with_console(wait_until_ready(agent, in.definition.ready_cmd, started.get(), steps)));
    started.reset();
    steps.say("warm up", 0.93);
    GB_TRY(with_console(exercise(agent)));
    auto synced = agent.run("sync", "root", std::chrono::seconds(120));
    if (!synced) return std::unexpected(synced.error());
    // Connections that are still being closed would be frozen half-closed, and every sandbox would wake up with them.
    ::usleep(2'000'000);
    steps.say("freeze", 0.96);
    GB_TRY(machine->capture(files.state()));
    GB_TRY(engine::make_empty_overlay(files.overlay(), disk_bytes));
    // For sandboxes that start again from their disk.
    GB_TRY(keep(in.kernel.vmlinuz, files.kernel()));
    GB_TRY(keep(in.initrd, files.initrd()));
    return write_file_atomic(folder / "manifest.json", write_manifest(manifest));
}

Result<Prepared> TemplateBuilder::prepare(const std::string& name, const ProgressFn& progress, Reuse reuse) {
    GB_TRY_ASSIGN(Inputs in, gather(name, progress));
    GB_TRY_ASSIGN(auto builds, store_.list());
    Manifest manifest;
    manifest.info.id = template_id();
    for (const StoredTemplate& have : builds) {
        if (have.manifest.info.name != name) continue;
        manifest.info.id = have.manifest.info.id;  // a name keeps its id over builds
        if (have.manifest.key == in.key && reuse == Reuse::when_unchanged) return Prepared{have, true};
    }
    manifest.info.name = name;
    manifest.info.build_id = random_uuid();
    manifest.info.cpu_count = in.definition.cpu_count;
    manifest.info.memory_mib = in.definition.memory_mib;
    manifest.info.disk_mib = in.definition.disk_mib;
    manifest.info.created_ms = now_ms();
    manifest.key = in.key;
    manifest.vmm_id = machinery_->engine->vmm_root().id;
    manifest.vmm_version = machinery_->engine->vmm_root().version.text();
    manifest.accelerator = in.accelerator.accelerator;
    manifest.accelerator_reason = in.accelerator.reason;
    manifest.guest_kernel = in.kernel.release;
    manifest.command_line = in.command_line;
    manifest.start_cmd = in.definition.start_cmd;
    manifest.default_user = in.definition.default_user;
    manifest.workdir = in.definition.workdir;
    manifest.env = in.definition.env;

    const fs::path building = store_.folder() / (".build-" + manifest.info.build_id);
    const fs::path final_folder = store_.folder() / manifest.info.build_id;
    GB_TRY(make_dirs(building));
    Status captured = capture(in, manifest, building, progress);
    if (!captured) {
        (void)remove_tree(building);
        return std::unexpected(captured.error());
    }
    std::error_code ec;
    fs::rename(building, final_folder, ec);
    if (ec) return fail_errno(ec.value(), "rename to " + final_folder.string());
    remove_older(store_.folder(), manifest.info);
    return Prepared{{std::move(manifest), final_folder}, false};
}

}  // namespace gb
