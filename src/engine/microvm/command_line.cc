// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/command_line.h"

#include <algorithm>

#include <fmt/format.h>

namespace gb::engine {
namespace {

// QEMU splits options at commas, and a value may not bring its own.
bool plain(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-' || c == ':' || c == '+';
    });
}

Status check(const MachineSpec& spec, const CommandLineOptions& options) {
    auto bad = [](std::string why) { return fail(ErrorCode::invalid_argument, std::move(why)); };
    if (spec.cpu_count < 1 || spec.cpu_count > 32) return bad(fmt::format("{} processors", spec.cpu_count));
    if (spec.memory_mib < 64 || spec.memory_mib > 256 * 1024)
        return bad(fmt::format("{} MiB of memory", spec.memory_mib));
    if (!spec.cpu_model.empty() && !std::ranges::all_of(spec.cpu_model, [](char c) {
            return plain(std::string_view(&c, 1)) || c == ',' || c == '=';
        }))
        return bad("not a processor model: " + spec.cpu_model);
    if (!spec.jail.cgroup_name.empty() && !plain(spec.jail.cgroup_name))
        return bad("not a name: " + spec.jail.cgroup_name);
    if (spec.tap && !plain(spec.mac)) return bad("not a MAC address: " + spec.mac);
    if (spec.disk.format == DiskFormat::qcow2 && spec.disk.backing.empty())
        return bad("an overlay without its base");
    if (spec.disk.format == DiskFormat::raw && !spec.disk.backing.empty())
        return bad("a raw disk has no base");
    if (!options.incoming && spec.kernel.image.empty()) return bad("no kernel to boot");
    if (options.incoming && spec.memory.mapping != MemoryMapping::copy_on_write)
        return bad("a state is loaded into a private copy of its memory image only");
    return {};
}

std::string accelerator_option(const MachineSpec& spec, const CommandLineOptions& options) {
    if (spec.accelerator == Accelerator::kvm) return "kvm";
    // Unbounded, the cache of translated code grows to an eighth of the host's memory.
    return fmt::format("tcg,tb-size={}", options.translation_cache_mib);
}

std::string memory_option(const MachineSpec& spec, const CommandLineOptions& options) {
    const bool shared = spec.memory.mapping == MemoryMapping::shared;
    std::string out = fmt::format("memory-backend-file,id=ram,size={}M,mem-path={},share={}", spec.memory_mib,
                                  kJailMemory, shared ? "on" : "off");
    if (!shared && options.readonly_backend) out += ",readonly=on,rom=off";
    return out;
}

// cache=unsafe: the guest's flushes reach the host's page cache, not the platter. A running sandbox does not
// survive its host anyway, and what is kept (capture, pause) is synced by whoever keeps it. Image locks are
// off because the base is shared by design and the overlay has one machine. When the host's disk is full the
// guest is stopped with its request kept (Machine::retry_full_disk): an error would reach whoever syncs, but
// what a file system has not written of its own records it forgets. Other errors are the guest's to know.
std::string drive_option(const MachineSpec& spec) {
    std::string common = fmt::format(
        "id=disk,if=none,file.driver=file,file.filename={},file.locking=off,cache=unsafe,discard=unmap,"
        "detect-zeroes=unmap,rerror=report,werror=enospc",
        kJailDisk);
    if (spec.disk.format == DiskFormat::raw) return common + ",format=raw";
    return common + fmt::format(
                        ",format=qcow2,backing.driver=raw,backing.file.driver=file,backing.file.filename={},"
                        "backing.file.locking=off",
                        kJailBase);
}

}  // namespace

std::string default_cpu_model(Accelerator accelerator) {
    // Under KVM without what a sandbox has no use for and the host's kernel would have to answer for: machines inside the
    // machine (both names are known for either vendor's processors) and performance counters. The register behind
    // arch-capabilities tells a kernel which mitigations it can do without, and ours does without all; where a host offers
    // it and then refuses it, as some do that are virtual machines themselves, QEMU 7.2 ends with an assertion.
    // Emulated, a processor without AVX is quicker: emulated AVX costs a call for each instruction.
    return accelerator == Accelerator::kvm ? "host,vmx=off,svm=off,pmu=off,arch-capabilities=off"
                                          : "Westmere-v1";
}

Result<std::vector<std::string>> qemu_command_line(const MachineSpec& spec,
                                                   const CommandLineOptions& options) {
    GB_TRY(check(spec, options));
    std::vector<std::string> out{options.binary};
    auto add = [&out](std::initializer_list<std::string> arguments) {
        out.insert(out.end(), arguments.begin(), arguments.end());
    };
    if (!spec.jail.cgroup_name.empty())
        add({"-name", spec.jail.cgroup_name});  // for a person who looks at ps(1)
    // Debian's kernel finds virtio-mmio devices through ACPI only. The legacy timer and interrupt controller
    // stay: without KVM's clock the kernel needs them, and the probe must boot the same machine under both.
    add({"-M", "microvm,acpi=on,memory-backend=ram", "-accel", accelerator_option(spec, options)});
    add({"-cpu", spec.cpu_model.empty() ? default_cpu_model(spec.accelerator) : spec.cpu_model});
    add({"-smp", std::to_string(spec.cpu_count), "-m", fmt::format("{}M", spec.memory_mib)});
    add({"-object", memory_option(spec, options)});
    add({"-L", kJailRoms, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"});
    add({"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"});
    add({"-global", "virtio-mmio.force-legacy=false"});
    // A state that was saved outside the ordinary migration stream has no configuration section; device_state.h.
    if (options.incoming) add({"-global", "migration.send-configuration=off"});
    // A socket that listens takes one client after the other: the monitor outlives the server. It must not
    // wait for one.
    add({"-chardev",
         fmt::format("socket,id=monitor,fd={}{}", options.monitor_fd,
                     spec.monitor.empty() ? "" : ",server=on,wait=off"),
         "-mon", "chardev=monitor,mode=control"});
    add({"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"});
    add({"-drive", drive_option(spec), "-device", "virtio-blk-device,drive=disk"});
    add({"-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-device,rng=rng"});
    if (spec.tap)
        add({"-netdev", fmt::format("tap,id=net,fd={},vhost=off", options.tap_fd), "-device",
             fmt::format("virtio-net-device,netdev=net,mac={}", spec.mac)});
    add({"-S"});  // the guest's first instruction waits until the limits of the jail hold
    if (options.incoming) {
        // No kernel here: it is in the memory image, and a copy of the file in each VMM would cost 15 MiB and
        // 10 ms.
        add({"-incoming", "defer"});
    } else {
        add({"-kernel", kJailKernel, "-append", spec.kernel.command_line});
        if (!spec.kernel.initrd.empty()) add({"-initrd", kJailInitrd});
    }
    return out;
}

}  // namespace gb::engine
