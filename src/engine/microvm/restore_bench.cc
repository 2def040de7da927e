// SPDX-License-Identifier: Apache-2.0
// restore_bench [RUNS] [MEMORY_MIB]: how long a restore takes, in the jail and by QEMU alone, of the same
// snapshot in turn on the same machine. Needs what microvm_test needs. Prints one line a figure: name,
// median, 90 %, least (milliseconds), then the ratio of the medians.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "engine/microvm/command_line.h"
#include "engine/microvm/microvm_machine.h"
#include "engine/microvm/test_machine.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr unsigned kWeightOfNiceMinus20 = 87;  // times that of nice 0 (sched_prio_to_weight in the kernel)

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class Figures {
  public:
    void add(const std::string& name, double ms) { values_[name].push_back(ms); }
    double median(const std::string& name) {
        auto& v = values_[name];
        std::ranges::sort(v);
        return v.empty() ? 0 : v[v.size() / 2];
    }
    void print() {
        for (auto& [name, v] : values_) {
            const double middle = median(name);
            fmt::print("{:44} {:7.1f} {:7.1f} {:7.1f}\n", name, middle, v[v.size() * 9 / 10], v.front());
        }
    }

  private:
    std::map<std::string, std::vector<double>> values_;
};

// QEMU as an ordinary process with the command line of our machine; `with_kernel` adds what a plain restore
// by hand has too.
Status bare_restore(testing::Bench& bench, MachineSpec spec, bool with_kernel, Figures& figures) {
    spec.monitor.clear();  // it gets one end of a pair
    CommandLineOptions options;
    options.incoming = true;
    GB_TRY_ASSIGN(std::vector<std::string> argv, qemu_command_line(spec, options));
    const std::map<std::string, std::string> paths{
        {kJailDisk, spec.disk.image}, {kJailBase, spec.disk.backing}, {kJailMemory, spec.memory.image}};
    for (std::string& argument : argv)
        for (const auto& [inside, outside] : paths)
            for (std::size_t at; (at = argument.find(inside)) != std::string::npos;)
                argument.replace(at, inside.size(), outside);
    if (with_kernel)
        argv.insert(argv.end(), {"-kernel", bench.kernel().image, "-initrd", bench.kernel().initrd, "-append",
                                 bench.kernel().command_line});
    auto drop = [&argv](std::string_view name) {  // the option and its value
        auto at = std::ranges::find(argv, name);
        if (at != argv.end()) argv.erase(at, at + 2);
    };
    drop("-sandbox");
    drop("-L");
    std::vector<char*> pointers;
    for (std::string& argument : argv) pointers.push_back(argument.data());
    pointers.push_back(nullptr);

    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno("socketpair");
    UniqueFd ours(ends[0]), theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), options.monitor_fd);

    const auto start = Clock::now();
    pid_t pid = -1;
    const int rc = ::posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) return fail_errno(rc, "start QEMU");
    theirs.reset();
    QmpClient monitor(std::move(ours));
    const std::string name = with_kernel ? "bare QEMU, with -kernel" : "bare QEMU";
    auto restore = [&]() -> Status {
        GB_TRY(monitor.call_all(qmp_start_commands(true), 20s));
        figures.add(name + ": start", ms_since(start));
        GB_TRY_ASSIGN(UniqueFd state, open_file(bench.state(), O_RDONLY));
        GB_TRY(monitor.call_all(qmp_load_commands(state.get()), 20s));
        for (;;) {
            GB_TRY_ASSIGN(boost::json::object event, monitor.wait_event("MIGRATION", 20s));
            if (event["status"] == "completed") break;
        }
        GB_TRY(monitor.call_all({{"cont", {}, -1}}, 20s));
        figures.add(name + ": total", ms_since(start));
        return {};
    };
    Status status = restore();
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return status;
}

Status run(int runs, unsigned memory_mib) {
    GB_TRY_ASSIGN(
        std::unique_ptr<testing::Bench> bench,
        testing::Bench::create(memory_mib, ::getpriority(PRIO_PROCESS, 0) == -20 ? kWeightOfNiceMinus20 : 1));
    {
        GB_TRY_ASSIGN(std::unique_ptr<Machine> machine, bench->engine().boot(bench->template_spec()));
        if (!machine->wait_console("count 3 ", 60s))
            return fail(ErrorCode::internal, "the guest does not come up");
        GB_TRY_ASSIGN(CaptureResult captured, machine->capture(bench->state()));
        fmt::print("{} MiB guest, state {} bytes, stopped for {} ms, QEMU {}\n", memory_mib,
                   captured.state_bytes, captured.stopped_for.count(),
                   bench->engine().vmm_root().version.text());
    }
    Figures figures;
    for (int i = 0; i < runs; ++i) {
        auto start = Clock::now();
        MachineSpec spec = bench->sandbox_spec("whole");
        figures.add("overlay copied", ms_since(start));
        start = Clock::now();
        {
            GB_TRY_ASSIGN(auto machine,
                          bench->engine().restore(std::move(spec), bench->state(), AfterLoad::run));
            figures.add("jail: total", ms_since(start));
            std::this_thread::sleep_for(200ms);
            GB_TRY_ASSIGN(std::uint64_t bytes, machine->private_bytes());
            figures.add("private MiB after 200 ms", static_cast<double>(bytes) / (1 << 20));
            start = Clock::now();
            GB_TRY(machine->kill());
            figures.add("jail: kill", ms_since(start));
        }
        spec = bench->sandbox_spec("parts");
        start = Clock::now();
        GB_TRY_ASSIGN(auto machine, bench->engine().prepare(std::move(spec)));
        figures.add("jail: prepare", ms_since(start));
        std::this_thread::sleep_for(50ms);
        start = Clock::now();
        GB_TRY(machine->load(bench->state(), AfterLoad::run));
        figures.add("jail: load a prepared one", ms_since(start));
        std::this_thread::sleep_for(100ms);
        start = Clock::now();
        GB_TRY(machine->stop());
        figures.add("jail: stop", ms_since(start));
        start = Clock::now();
        GB_TRY(machine->cont());
        figures.add("jail: cont", ms_since(start));
        GB_TRY(machine->kill());
        GB_TRY(bare_restore(*bench, bench->sandbox_spec("bare"), false, figures));
        GB_TRY(bare_restore(*bench, bench->sandbox_spec("bare"), true, figures));
    }
    figures.print();
    fmt::print("jail / bare QEMU {:.2f}, jail / bare QEMU with -kernel {:.2f}\n",
               figures.median("jail: total") / figures.median("bare QEMU: total"),
               figures.median("jail: total") / figures.median("bare QEMU, with -kernel: total"));
    return {};
}

}  // namespace
}  // namespace gb::engine

int main(int argc, char** argv) {
    const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
    const unsigned memory_mib = argc > 2 ? static_cast<unsigned>(std::max(64, std::atoi(argv[2]))) : 1024;
    gb::Status status = gb::engine::run(runs, memory_mib);
    if (!status) fmt::print(stderr, "{}\n", status.error().message);
    return status ? 0 : 1;
}
