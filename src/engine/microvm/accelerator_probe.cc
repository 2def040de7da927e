// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/accelerator_probe.h"

#include <linux/kvm.h>
#include <sys/ioctl.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace json = boost::json;
namespace {

constexpr std::chrono::seconds kLookEvery{1};

AcceleratorChoice emulate(std::string reason) {
    return {Accelerator::tcg, std::move(reason), false};
}

Status try_kvm(MicrovmEngine& engine, const ProbeOptions& options, const fs::path& folder) {
    MachineSpec spec;
    spec.jail = options.jail;
    spec.jail.cgroup_name = "probe-" + random_id(8);
    spec.accelerator = Accelerator::kvm;
    spec.memory_mib = 256;
    spec.kernel = options.kernel;
    spec.kernel.command_line += fmt::format(" {}", kProbeParameter);
    spec.memory = {folder / "memory.img", MemoryMapping::shared};
    spec.disk = {folder / "disk.img", DiskFormat::raw, {}};
    GB_TRY_ASSIGN(UniqueFd disk, open_file(spec.disk.image, O_RDWR | O_CREAT | O_EXCL));
    if (::ftruncate(disk.get(), 1 << 20) != 0) return fail_errno("truncate " + spec.disk.image.string());

    const std::int64_t start = monotonic_ms();
    GB_TRY_ASSIGN(std::unique_ptr<Machine> machine, engine.boot(std::move(spec)));
    while (machine->alive()) {
        if (machine->wait_console(kProbeAnswer, kLookEvery)) return {};
        if (machine->usage().cpu_usec > static_cast<std::uint64_t>(options.limit.count()) * 1000)
            return fail(ErrorCode::deadline_exceeded,
                        fmt::format("the guest kernel did not come up within {} of a processor",
                                    duration_text(options.limit.count())));
        if (monotonic_ms() - start > options.longest.count())
            return fail(ErrorCode::deadline_exceeded, fmt::format("the guest kernel did not come up within {}",
                                                                  duration_text(options.longest.count())));
    }
    if (machine->wait_console(kProbeAnswer, kLookEvery)) return {};  // its last words
    std::string log = machine->vmm_log();
    return fail(ErrorCode::unavailable, "the virtual machine ended: " + log.substr(0, log.find('\n')));
}

}  // namespace

std::string probe_key(std::string_view boot_id, std::string_view kernel_hash, std::string_view vmm_id) {
    return fmt::format("{}/{}/{}", boot_id, kernel_hash, vmm_id);
}

std::string format_probe(std::string_view key, const AcceleratorChoice& choice) {
    json::object out;
    out["key"] = key;
    out["accelerator"] = accelerator_name(choice.accelerator);
    out["reason"] = choice.reason;
    return json::serialize(out) + "\n";
}

std::optional<AcceleratorChoice> parse_probe(std::string_view text, std::string_view key) {
    json::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_object()) return std::nullopt;
    auto field = [&](std::string_view name) -> std::string {
        const json::value* found = value.get_object().if_contains(name);
        return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    const std::string accelerator = field("accelerator");
    if (field("key") != key || (accelerator != "kvm" && accelerator != "tcg")) return std::nullopt;
    return AcceleratorChoice{accelerator == "kvm" ? Accelerator::kvm : Accelerator::tcg, field("reason"),
                             true};
}

AcceleratorChoice probe_accelerator(MicrovmEngine& engine, const ProbeOptions& options) {
    std::error_code ec;
    if (!fs::exists(options.device, ec))
        return emulate(fmt::format("there is no {}", options.device.string()));
    auto device = open_file(options.device, O_RDWR);
    if (!device) return emulate(device.error().message);
    if (::ioctl(device->get(), KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
        return emulate(fmt::format("{} is not the KVM that QEMU knows", options.device.string()));

    auto boot_id = read_file("/proc/sys/kernel/random/boot_id");
    auto kernel = read_file(options.kernel.image);
    if (!kernel) return emulate(kernel.error().message);
    const std::string key = probe_key(boot_id ? boot_id->substr(0, boot_id->find('\n')) : std::string(),
                                      sha256_hex(*kernel), engine.vmm_root().id);
    const fs::path cache = options.state_folder / "accelerator.json";
    if (auto text = read_file(cache))
        if (auto known = parse_probe(*text, key)) return *known;

    const fs::path folder = options.state_folder / ("probe-" + random_id(8));
    Status tried = make_dirs(folder);
    if (tried) tried = try_kvm(engine, options, folder);
    (void)remove_tree(folder);
    AcceleratorChoice choice =
        tried ? AcceleratorChoice{Accelerator::kvm, "the guest kernel boots under KVM", false}
              : emulate(fmt::format("{} exists, but does not work: {}", options.device.string(),
                                    tried.error().message));
    (void)write_file_atomic(cache, format_probe(key, choice));
    return choice;
}

}  // namespace gb::engine
