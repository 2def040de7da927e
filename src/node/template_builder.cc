// SPDX-License-Identifier: Apache-2.0
#include "node/template_builder.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "engine/microvm/command_line.h"
#include "engine/microvm/overlay.h"
#include "image/command_line.h"
#include "image/definition_hash.h"
#include "image/initramfs.h"
#include "image/kernel.h"
#include "image/rootfs.h"
#include "net/slot.h"
#include "node/accelerator_check.h"
#include "node/agent_client.h"
#include "node/guest_link.h"
#include "node/preparation.h"
#include "node/ready_wait.h"

namespace gb {
namespace fs = std::filesystem;

namespace {

using image::Progress;
using image::ProgressFn;

constexpr int kKeyFormat = 1;  // goes up when something that is not in the key's text changes captures
// So long nothing may move while it boots and is asked; the ceiling is the operator's.
constexpr std::chrono::minutes kStill{5};

// Building the images is most of the way; the rest of the bar belongs to boot and capture.
constexpr double kKernelShare = 0.1, kImageShare = 0.8;
constexpr double kReadyFrom = 0.86, kReadyTo = 0.95;

bool runs_interpreter(const image::TemplateDefinition& definition) {
    return definition.start_cmd.find("glovebox-interpreter") != std::string::npos;
}

class Steps {
  public:
    explicit Steps(const ProgressFn& sink) : sink_(sink), started_ms_(monotonic_ms()) {}
    void say(std::string step, double fraction, std::string detail = {}) const {
        if (!sink_) return;
        const std::string elapsed = fmt::format("{} s", (monotonic_ms() - started_ms_) / 1000);
        sink_({std::move(step), fraction, detail.empty() ? elapsed : fmt::format("{}, {}", detail, elapsed)});
    }
    [[nodiscard]] ProgressFn part(double from, double to) const {
        return [this, from, to](const Progress& p) {
            if (sink_) sink_({p.step, from + (to - from) * p.fraction, p.detail});
        };
    }

  private:
    const ProgressFn& sink_;
    std::int64_t started_ms_;
};

// Each program once before the freeze, so that its pages are in the guest's page cache.
Status exercise(const AgentClient& agent, const Patience& patience) {
    for (const char* command : {"true", "sudo -n true", "ls -la ~ > /dev/null", "python3 -c pass", "git --version"}) {
        GB_TRY_ASSIGN(CommandResult result, agent.run(command, "user", patience));
        if (result.exit_code != 0)
            return fail(ErrorCode::internal, fmt::format("'{}' ended with {} in the new template: {}", command,
                                                         result.exit_code, result.err.substr(0, 300)));
    }
    return {};
}

// What a second try may mend: nothing came in time, or somebody was gone.
bool may_be_load(const Error& error) {
    return error.code == ErrorCode::deadline_exceeded || error.code == ErrorCode::unavailable;
}

Error with_advice(Error error, const image::TemplateDefinition& definition, const NodeOptions& options) {
    error.message += fmt::format(
        "\nThe root image and the kernel are kept: `glovebox template prepare {0}` goes on with the boot of the machine.",
        definition.name);
    if (error.code == ErrorCode::deadline_exceeded)
        error.message += fmt::format(
            " If its start command works for long without a sign of life, raise ready_timeout (now {}) in {}; "
            "--give-up-after (now {}) limits the whole.",
            duration_text(definition.ready_timeout.count()),
            (options.images_dir / definition.name / "template.toml").string(),
            duration_text(options.prepare_ceiling.count()));
    return error;
}

// A copy that every machine may read.
Status keep(const fs::path& from, const fs::path& to) {
    GB_TRY(copy_file_sparse(from, to, 0444));
    std::error_code ec;
    fs::permissions(to, fs::perms(0444), ec);  // whatever the umask is
    return ec ? Status(fail_errno(ec.value(), "chmod " + to.string())) : Status();
}

// What builders that were killed left.
void remove_abandoned(const fs::path& folder) {
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec))
        if (entry.path().filename().string().starts_with(".build-")) (void)remove_tree(entry.path());
}

}  // namespace

struct TemplateBuilder::Inputs {
    image::TemplateDefinition definition;
    std::string rootfs_hash;
    image::RootfsImage rootfs;  // built once it is known to be needed
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
    GB_TRY_ASSIGN(BuilderMachinery opened, open_builder_machinery(options_));
    lock_ = std::move(opened.lock);
    machinery_ = std::make_unique<Machinery>(std::move(opened.machinery));
    return {};
}

Result<TemplateBuilder::Inputs> TemplateBuilder::gather(const std::string& name, const ProgressFn& progress) {
    Steps steps(progress);
    Inputs in;
    GB_TRY_ASSIGN(in.definition, image::load_definition(options_.images_dir, name));
    GB_TRY_ASSIGN(in.rootfs_hash, image::definition_hash(in.definition));
    GB_TRY_ASSIGN(in.kernel, image::prepare_kernel(options_.cache_dir, steps.part(0, kKernelShare)));
    steps.say("wait for other builds", kKernelShare);
    GB_TRY(open());

    std::vector<image::GuestFile> files{{options_.guest_dir / "glovebox-agent", "glovebox-agent"}};
    if (runs_interpreter(in.definition))
        for (const char* program : {"glovebox-interpreter", "glovebox-entropy.node"})
            files.push_back({options_.guest_dir / program, program});
    GB_TRY(make_dirs(options_.data_dir / "builder"));
    in.initrd = options_.data_dir / "builder" / fmt::format("initrd-{}.img", name);
    GB_TRY(image::build_initramfs(in.kernel, options_.guest_dir / "glovebox-init", files, in.initrd));

    image::CommandLine hardware;
    hardware.extra = {fmt::format("glovebox.ip={}/30", kGuestAddress), fmt::format("glovebox.gw={}", kGuestGateway)};
    steps.say("look for hardware virtualisation", kKernelShare);
    in.accelerator = check_accelerator(*machinery_, builder_folder(options_),
                                       {in.kernel.vmlinuz, in.initrd, image::kernel_command_line(hardware)});
    image::CommandLine line = hardware;
    if (in.accelerator.accelerator == engine::Accelerator::tcg) {
        line.processor = image::Processor::emulated;
        line.tsc_khz = image::measure_tsc_khz();
    }
    in.command_line = image::kernel_command_line(line);

    GB_TRY_ASSIGN(std::string initrd, read_file(in.initrd));
    const image::TemplateDefinition& d = in.definition;
    std::string text = fmt::format(
        "{}\n{}\n{}\n{}\n{} {} {}\n{}\n{}\n{}\n{}\n{}\n{}\n", kKeyFormat, in.rootfs_hash, in.kernel.version,
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
    spec.jail.end_with_starter = true;  // a builder that is killed leaves nothing that runs
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

    const AgentClient agent = guest_link(*slot, *machine);
    const Patience patience(kStill, options_.prepare_ceiling);
    auto with_console = [&](Status status) -> Status {
        if (status) return {};
        std::string console = machine->console_tail();
        if (console.size() > 1500) console = "…" + console.substr(console.size() - 1500);
        return std::unexpected(status.error().with(fmt::format("template '{}' (its console ends with: {})",
                                                               manifest.info.name, console)));
    };
    GB_TRY(with_console(agent.wait_ready(patience)));
    GuestIdentity identity;
    identity.sandbox_id = "template";
    identity.template_id = manifest.info.id;
    identity.default_user = manifest.default_user;
    identity.workdir = manifest.workdir;
    identity.env_vars = manifest.env;
    GB_TRY(with_console(agent.init(identity, patience)));
    auto marked = agent.run(fmt::format("printf 'ENV_ID=%s\\nTEMPLATE_ID=%s\\nBUILD_ID=%s\\n' {0} {0} {1} > /.e2b",
                                        manifest.info.id, manifest.info.build_id),
                            "root", patience);
    if (!marked) return with_console(std::unexpected(marked.error()));
    std::unique_ptr<RunningCommand> started;
    if (!in.definition.start_cmd.empty()) {
        steps.say("run the start command", kReadyFrom);
        auto command = agent.start(in.definition.start_cmd, "root", "start", patience);
        if (!command) return with_console(std::unexpected(command.error()));
        started = *std::move(command);
    }
    ReadyWait wait{.command = in.definition.ready_cmd,
                   .patience = {in.definition.ready_timeout, options_.prepare_ceiling},
                   .signs = machine_signs(*machine),
                   .interpreter = runs_interpreter(in.definition),
                   .started = started.get()};
    wait.say = [&](const std::string& detail, double fraction) {
        steps.say("wait until it is ready", kReadyFrom + (kReadyTo - kReadyFrom) * fraction, detail);
    };
    GB_TRY(with_console(wait_until_ready(agent, wait)));
    started.reset();
    steps.say("warm up", kReadyTo);
    GB_TRY(with_console(exercise(agent, patience)));
    auto synced = agent.run("sync", "root", patience);
    if (!synced) return with_console(std::unexpected(synced.error()));
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

Result<Prepared> TemplateBuilder::prepare(const std::string& name, const ProgressFn& sink, Reuse reuse) {
    double reached = 0;  // a second try begins again, but the bar does not
    std::string_view again;
    PreparationNote note(store_.folder(), name);
    const ProgressFn progress = [&](Progress p) {
        reached = p.fraction = std::max(reached, p.fraction);
        p.step.insert(0, again);
        note.update(p);
        if (sink) sink(p);
    };
    GB_TRY_ASSIGN(Inputs in, gather(name, progress));
    GB_TRY_ASSIGN(auto builds, store_.list());
    Manifest manifest;
    manifest.info.id = template_id();
    for (const StoredTemplate& have : builds) {
        if (have.manifest.info.name != name) continue;
        manifest.info.id = have.manifest.info.id;  // a name keeps its id over builds
        if (have.manifest.key == in.key && reuse == Reuse::when_unchanged) return Prepared{have, true};
    }
    const Steps steps(progress);
    GB_TRY_ASSIGN(in.rootfs, image::build_rootfs(in.definition, options_.cache_dir, steps.part(kKernelShare, kImageShare)));
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
    if (manifest.accelerator == engine::Accelerator::kvm) {  // an emulated machine knows neither
        GB_TRY_ASSIGN(manifest.processor, engine::this_processor());
        manifest.tsc_khz = image::measure_tsc_khz();
    }
    manifest.guest_kernel = in.kernel.release;
    manifest.command_line = in.command_line;
    manifest.start_cmd = in.definition.start_cmd;
    manifest.default_user = in.definition.default_user;
    manifest.workdir = in.definition.workdir;
    manifest.env = in.definition.env;

    const fs::path building = store_.folder() / (".build-" + manifest.info.build_id);
    const fs::path final_folder = store_.folder() / manifest.info.build_id;
    auto attempt = [&]() -> Status {
        GB_TRY(make_dirs(building));
        Status captured = capture(in, manifest, building, progress);
        if (!captured) (void)remove_tree(building);
        return captured;
    };
    Status captured = attempt();
    if (!captured && may_be_load(captured.error())) {
        log::warn("the machine of a template did not get ready, perhaps because this host is busy: once more",
                  {{"template", name}, {"error", captured.error().message}});
        again = "once more: ";
        captured = attempt();
    }
    if (!captured) return std::unexpected(with_advice(captured.error(), in.definition, options_));
    std::error_code ec;
    fs::rename(building, final_folder, ec);
    if (ec) return fail_errno(ec.value(), "rename to " + final_folder.string());
    remove_abandoned(store_.folder());
    remove_other_builds(store_.folder(), manifest.info);
    return Prepared{{std::move(manifest), final_folder}, false};
}

}  // namespace gb
