// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_engine.h"

#include <array>

#include <sys/ioctl.h>
#include <sys/utsname.h>

#include <boost/json/serialize.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>

#include "base/file.h"
#include "base/host_memory.h"
#include "base/version.h"
#include "cli/engine_report.h"
#include "cli/progress.h"
#include "engine/cgroup.h"
#include "node/engine_trial.h"

namespace gb::cli {
namespace {

std::string kvm_state() {
    auto device = open_file("/dev/kvm", O_RDWR);
    if (!device) return device.error().message;
    const int api = ::ioctl(device->get(), KVM_GET_API_VERSION, 0);
    std::string out = fmt::format("/dev/kvm opens, API {}", api);
    for (const char* module : {"kvm_intel", "kvm_amd"})
        if (auto nested = read_file(fmt::format("/sys/module/{}/parameters/nested", module)))
            out += fmt::format(", {} nested={}", module, nested->substr(0, nested->find('\n')));
    return out;
}

std::string cgroup_state() {
    auto layout = engine::detect_cgroup_layout();
    if (!layout) return "not usable";
    std::string out = layout->version == engine::CgroupVersion::v2 ? "version 2:" : "version 1:";
    for (const auto& [controller, place] : layout->controllers) out += " " + controller;
    return out;
}

EngineHost look(const utsname& names) {
    EngineHost host;
    const std::string cpuinfo = read_file("/proc/cpuinfo").value_or("");
    host.version = version();
    host.distribution = distribution_of(read_file("/etc/os-release").value_or(""));
    host.kernel = fmt::format("{} {}", names.release, names.machine);
    host.processor = processor_of(cpuinfo);
    if (auto mib = available_memory_mib()) host.memory = fmt::format("{} MiB available", *mib);
    host.kvm = kvm_state();
    host.virtualised = virtualised_of(cpuinfo);
    host.cgroups = cgroup_state();
    return host;
}

}  // namespace

int doctor_engine(const NodeOptions& options, bool json) {
    utsname names{};
    ::uname(&names);
    const std::array<std::string, 2> secret{names.nodename, names.domainname};
    const EngineHost host = look(names);
    EngineTrial trial;
    {
        ProgressLine line("engine");
        trial = try_engine(options, [&](const image::Progress& p) { line.update(p.fraction, p.step, p.detail); });
    }
    if (json)
        fmt::print("{}\n", boost::json::serialize(engine_report_json(host, trial, secret)));
    else
        fmt::print("{}", engine_report(host, trial, secret));
    // All of it, for who sits here; the report has it without names.
    for (const TrialStep& step : trial.steps)
        if (!step.error.empty()) fmt::print(stderr, "glovebox: {}: {}\n", step.name, step.error);
    return trial.passed() ? 0 : 1;
}

}  // namespace gb::cli
