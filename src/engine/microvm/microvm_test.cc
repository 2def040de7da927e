// SPDX-License-Identifier: Apache-2.0
// Boots, captures and restores real machines in their jails.
#include <chrono>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/eventually.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "engine/microvm/accelerator_probe.h"
#include "engine/microvm/strays.h"
#include "engine/microvm/test_machine.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class MicrovmTest : public ::testing::Test {
  protected:
    void SetUp() override {
        auto bench = testing::Bench::create();
        if (!bench && bench.error().code == ErrorCode::failed_precondition)
            GTEST_SKIP() << bench.error().message;
        ASSERT_OK(bench);
        bench_ = std::move(*bench);
    }

    // Boots the test guest, lets it count, captures it.
    void make_template() {
        auto machine = bench_->engine().boot(bench_->template_spec());
        ASSERT_OK(machine);
        ASSERT_TRUE((*machine)->wait_console("count 3 ", 10min))
            << (*machine)->console_tail() << (*machine)->vmm_log();
        auto captured = (*machine)->capture(bench_->state());
        ASSERT_OK(captured);
        EXPECT_GT(captured->state_bytes, 10'000U);
        EXPECT_FALSE((*machine)->alive());
    }

    // A disk on which the guest finds `token` in its sector 8.
    MachineSpec sandbox(const std::string& token) {
        MachineSpec spec = bench_->sandbox_spec(token);
        const std::string write =
            fmt::format("write -q -s {} 4096 512", (bench_->file(token + ".txt")).string());
        std::string sector = token;
        sector.resize(512, '\0');
        (void)write_file_atomic(bench_->file(token + ".txt"), sector);
        // The overlay names its base as the jail sees it: tell qemu-io where it is here.
        auto done =
            run_checked({"qemu-io", "-c", write, "--image-opts",
                         fmt::format("driver=qcow2,file.driver=file,file.filename={},backing.driver=raw,"
                                     "backing.file.driver=file,backing.file.filename={}",
                                     spec.disk.image.string(), spec.disk.backing.string())});
        EXPECT_TRUE(done.has_value()) << done.error().message;
        return spec;
    }

    std::unique_ptr<testing::Bench> bench_;
};

TEST_F(MicrovmTest, RestoredMachinesRunOnIndependently) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    const std::string image = sha256_hex(*read_file(bench_->file("memory.img")));

    std::vector<std::unique_ptr<Machine>> machines;
    for (const char* token : {"alpha", "beta", "gamma"}) {
        auto machine = bench_->engine().restore(sandbox(token), bench_->state(), AfterLoad::run);
        ASSERT_OK(machine);
        machines.push_back(std::move(*machine));
    }
    int i = 0;
    for (const char* token : {"alpha", "beta", "gamma"}) {
        Machine& machine = *machines[i++];
        EXPECT_TRUE(machine.wait_console(fmt::format("token {} memory intact", token), 10min))
            << machine.console_tail();
        EXPECT_TRUE(machine.wait_console("count 8 ", 10min)) << machine.console_tail();
        EXPECT_EQ(machine.console_tail().find("count 1 "), std::string::npos)
            << "it goes on, it does not start again";
        EXPECT_EQ(machine.console_tail().find("CORRUPT"), std::string::npos);
        EXPECT_GT(*machine.private_bytes(), 1U << 20);
        EXPECT_GT(machine.usage().memory_bytes, 0U);
        EXPECT_GT(machine.usage().cpu_usec, 0U);
    }
    for (auto& machine : machines) ASSERT_OK(machine->kill());
    EXPECT_GT(machines[0]->usage().cpu_usec, 0U) << "what a machine used is known after its end";
    EXPECT_EQ(sha256_hex(*read_file(bench_->file("memory.img"))), image) << "a template's memory changed";
    EXPECT_EQ(sha256_hex(*read_file(bench_->file("base.img"))), sha256_hex(std::string(1 << 20, '\0')));
}

TEST_F(MicrovmTest, PreparedMachineLoadsLaterAndStopsAndGoesOn) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    auto machine = bench_->engine().prepare(sandbox("later"));
    ASSERT_OK(machine);
    EXPECT_TRUE((*machine)->alive());
    ASSERT_OK((*machine)->load(bench_->state(), AfterLoad::stay_paused));
    EXPECT_FALSE((*machine)->wait_console("count", 500ms)) << "it must be paused";
    ASSERT_OK((*machine)->cont());
    EXPECT_TRUE((*machine)->wait_console("token later", 10min));
    ASSERT_OK((*machine)->stop());
    std::this_thread::sleep_for(50ms);
    const std::string before = (*machine)->console_tail();
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ((*machine)->console_tail(), before);
    EXPECT_EQ((*machine)->capture(bench_->file("no")).error().code, ErrorCode::failed_precondition);
}

TEST_F(MicrovmTest, BadStateIsAnErrorAndLeavesNothing) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    const std::string good = *read_file(bench_->state());
    std::string flipped = good;
    for (std::size_t i = 0; i < 64; ++i) flipped[i] ^= 0x5a;
    for (const std::string& bad :
         {std::string("nonsense"), good.substr(0, good.size() / 2), flipped}) {
        ASSERT_OK(write_file_atomic(bench_->file("bad.bin"), bad));
        auto machine =
            bench_->engine().restore(bench_->sandbox_spec("bad"), bench_->file("bad.bin"), AfterLoad::run);
        ASSERT_FALSE(machine.has_value()) << bad.size();
        EXPECT_EQ(machine.error().code, ErrorCode::data_loss) << machine.error().message;
        EXPECT_NE(machine.error().message.find("QEMU ended with"), std::string::npos)
            << machine.error().message;
    }
    EXPECT_EQ(bench_->engine()
                  .restore(bench_->sandbox_spec("bad"), bench_->file("none"), AfterLoad::run)
                  .error()
                  .code,
              ErrorCode::not_found);
    ASSERT_OK(write_file_atomic(bench_->file("empty.bin"), ""));
    const auto empty =
        bench_->engine().restore(bench_->sandbox_spec("bad"), bench_->file("empty.bin"), AfterLoad::run);
    ASSERT_FALSE(empty.has_value());
    EXPECT_EQ(empty.error().code, ErrorCode::data_loss) << empty.error().message;
    EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());
}

TEST_F(MicrovmTest, KillLeavesNothing) {
    auto machine = bench_->engine().boot(bench_->template_spec());
    ASSERT_OK(machine);
    const pid_t pid = (*machine)->pid();
    EXPECT_EQ(list_cgroups(bench_->options().cgroups, bench_->options().instance).size(), 1U);
    ASSERT_OK((*machine)->kill());
    ASSERT_OK((*machine)->kill());
    EXPECT_FALSE((*machine)->alive());
    EXPECT_EQ(::kill(pid, 0), -1);
    EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());
    EXPECT_EQ(read_file("/proc/self/mountinfo")->find(bench_->options().data_folder.string()),
              std::string::npos);
    EXPECT_FALSE((*machine)->stop().has_value()) << "a dead machine answers with an error";
}

TEST_F(MicrovmTest, KillFromAnotherThreadEndsAWait) {
    auto machine = bench_->engine().boot(bench_->template_spec());
    ASSERT_OK(machine);
    std::thread killer([&] {
        std::this_thread::sleep_for(100ms);
        (void)(*machine)->kill();
    });
    EXPECT_TRUE((*machine)->wait(10min).has_value());
    killer.join();
}

TEST_F(MicrovmTest, PanicEndsTheMachine) {
    MachineSpec spec = bench_->template_spec();
    spec.kernel.command_line += " test.panic";
    auto machine = bench_->engine().boot(std::move(spec));
    ASSERT_OK(machine);
    auto ended = (*machine)->wait(60s);
    ASSERT_TRUE(ended.has_value()) << (*machine)->console_tail();
    EXPECT_EQ(ended->code, 0);
    EXPECT_EQ(ended->signal, 0);
    EXPECT_NE((*machine)->console_tail().find("panic"), std::string::npos) << (*machine)->console_tail();
}

TEST_F(MicrovmTest, EndlessConsoleIsBounded) {
    MachineSpec spec = bench_->template_spec();
    spec.kernel.command_line += " test.flood";
    auto machine = bench_->engine().boot(std::move(spec));
    ASSERT_OK(machine);
    std::this_thread::sleep_for(8s);
    EXPECT_TRUE((*machine)->alive());
    EXPECT_LE((*machine)->console_tail().size(), ConsoleReader::kKeepBytes);
    ASSERT_OK((*machine)->stop());  // and the monitor still answers
}

TEST_F(MicrovmTest, JailHasNoPrivileges) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    auto machine = bench_->engine().restore(bench_->sandbox_spec("jail"), bench_->state(), AfterLoad::run);
    ASSERT_OK(machine);
    const std::string proc = fmt::format("/proc/{}", (*machine)->pid());
    const std::string status = *read_file(proc + "/status");
    for (const char* line :
         {"\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n", "\nCapPrm:\t0000000000000000\n",
          "\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n", "\nCapAmb:\t0000000000000000\n",
          "\nCapInh:\t0000000000000000\n", "\nGroups:\t \n"})
        EXPECT_NE(status.find(line), std::string::npos) << line << status;
    EXPECT_EQ(status.find("\nUid:\t0"), std::string::npos);
    for (const char* ns : {"mnt", "pid", "net", "ipc", "uts"})
        EXPECT_NE(fs::read_symlink(proc + "/ns/" + ns), fs::read_symlink(fmt::format("/proc/self/ns/{}", ns)))
            << ns;
    for (const auto& entry : fs::directory_iterator(proc + "/root"))
        EXPECT_TRUE(
            std::string(" dev lib lib64 usr vm ").find(" " + entry.path().filename().string() + " ") !=
            std::string::npos)
            << entry.path();
    EXPECT_LT(std::distance(fs::directory_iterator(proc + "/fd"), {}), 40);
}

// What a VMM that its guest has taken over could try: its user, inside its own mounts.
TEST_F(MicrovmTest, JailsUserCannotWriteWhatOthersShare) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    MachineSpec spec = bench_->sandbox_spec("writer");
    const uid_t uid = spec.jail.uid;
    auto machine = bench_->engine().restore(std::move(spec), bench_->state(), AfterLoad::run);
    ASSERT_OK(machine);
    auto attempt = [&](const std::string& path, int flags) {
        const pid_t child = ::fork();
        if (child == 0) {
            UniqueFd ns(::open(fmt::format("/proc/{}/ns/mnt", (*machine)->pid()).c_str(), O_RDONLY));
            if (::setns(ns.get(), CLONE_NEWNS) != 0) ::_exit(200);
            if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) ::_exit(201);
            ::_exit(::open(path.c_str(), flags) < 0 ? errno : 0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    };
    EXPECT_EQ(attempt("/vm/memory", O_RDONLY), 0);
    EXPECT_EQ(attempt("/vm/base", O_RDONLY), 0);
    EXPECT_EQ(attempt("/vm/disk", O_RDWR), 0);
    for (const char* path :
         {"/vm/memory", "/vm/base", "/usr/bin/qemu-system-x86_64", "/lib/glovebox-vmm-shim.so"}) {
        const int err = attempt(path, O_RDWR);
        EXPECT_TRUE(err == EROFS || err == EACCES) << path << " " << err;
    }
    EXPECT_EQ(attempt("/new", O_RDWR | O_CREAT), EROFS);
    EXPECT_EQ(attempt("/dev/kvm", O_RDWR), ENOENT) << "an emulated machine has no KVM";
    EXPECT_EQ(attempt("/etc/passwd", O_RDONLY), ENOENT);
    EXPECT_EQ(attempt("/proc/self/status", O_RDONLY), ENOENT);
}

TEST_F(MicrovmTest, WritableTemplateFilesAreRefused) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    for (const char* name : {"memory.img", "base.img"}) {
        fs::permissions(bench_->file(name), fs::perms::others_write, fs::perm_options::add);
        auto machine = bench_->engine().restore(bench_->sandbox_spec("w"), bench_->state(), AfterLoad::run);
        ASSERT_FALSE(machine.has_value());
        EXPECT_EQ(machine.error().code, ErrorCode::failed_precondition) << machine.error().message;
        fs::permissions(bench_->file(name), fs::perms::others_write, fs::perm_options::remove);
    }
}

TEST_F(MicrovmTest, ManyThreadsRestoreAtOnce) {
    ASSERT_NO_FATAL_FAILURE(make_template());
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int n = 0; n < 3; ++n) {
                auto machine = bench_->engine().restore(bench_->sandbox_spec(fmt::format("t{}-{}", t, n)),
                                                        bench_->state(), AfterLoad::run);
                if (!machine) {
                    ADD_FAILURE() << machine.error().message;
                } else if (!(*machine)->wait_console("memory intact", 10min)) {
                    ADD_FAILURE() << (*machine)->console_tail() << (*machine)->vmm_log();
                } else if (auto killed = (*machine)->kill(); !killed) {
                    ADD_FAILURE() << killed.error().message;
                } else {
                    ++good;
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good.load(), 12);
}

TEST_F(MicrovmTest, TwoProcessors) {
    MachineSpec spec = bench_->template_spec();
    spec.cpu_count = 2;
    auto machine = bench_->engine().boot(std::move(spec));
    ASSERT_OK(machine);
    ASSERT_TRUE((*machine)->wait_console("count 2 ", 10min)) << (*machine)->console_tail();
    ASSERT_OK((*machine)->capture(bench_->state()));
    MachineSpec again = bench_->sandbox_spec("two");
    again.cpu_count = 2;
    auto restored = bench_->engine().restore(std::move(again), bench_->state(), AfterLoad::run);
    ASSERT_OK(restored);
    EXPECT_TRUE((*restored)->wait_console("count 6 ", 10min)) << (*restored)->console_tail();
}

// A network namespace with a tap device in it, as a slot has it, and this test's thread moved into it.
struct Slot {
    UniqueFd netns, tap;
    static UniqueFd open_tap() {
        UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
        ifreq request{};
        request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
        std::strcpy(request.ifr_name, "tap0");
        EXPECT_EQ(::ioctl(fd.get(), TUNSETIFF, &request), 0);
        return fd;
    }
    static void enter() { ASSERT_EQ(::unshare(CLONE_NEWNET), 0); }
    void make() {
        netns.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        tap = open_tap();
        ASSERT_TRUE(run_checked({"ip", "address", "add", "10.77.0.1/24", "dev", "tap0"}).has_value());
        ASSERT_TRUE(run_checked({"ip", "link", "set", "tap0", "up"}).has_value());
    }
    static std::string hello() {
        std::string said = "nothing";
        (void)gb::test::eventually([&] {
            UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(7);
            ::inet_pton(AF_INET, "10.77.0.2", &address.sin_addr);
            timeval limit{2, 0};
            ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
            ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            char buffer[64];
            if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
                if (ssize_t n = ::read(fd.get(), buffer, sizeof buffer); n > 0) {
                    said.assign(buffer, static_cast<std::size_t>(n));
                    return true;
                }
            return false;
        });
        return said;
    }
};

TEST_F(MicrovmTest, RestoredGuestAnswersInItsSlot) {
    if (!fs::exists("/dev/net/tun")) GTEST_SKIP() << "no /dev/net/tun";
    auto in_slot = [&](auto body) {  // a thread of its own: a namespace cannot be left again
        std::thread thread([&] {
            ASSERT_NO_FATAL_FAILURE(Slot::enter());
            Slot slot;
            ASSERT_NO_FATAL_FAILURE(slot.make());
            body(slot);
        });
        thread.join();
    };
    auto put = [](MachineSpec& spec, Slot& slot) {
        spec.tap = std::move(slot.tap);
        spec.mac = "02:67:62:00:00:01";
        spec.jail.netns_fd = slot.netns.get();
    };
    in_slot([&](Slot& slot) {
        MachineSpec spec = bench_->template_spec();
        put(spec, slot);
        auto machine = bench_->engine().boot(std::move(spec));
        ASSERT_OK(machine);
        ASSERT_TRUE((*machine)->wait_console("count 2 ", 10min)) << (*machine)->console_tail();
        EXPECT_EQ(Slot::hello(), "hello from the guest\n");
        ASSERT_OK((*machine)->capture(bench_->state()));
    });
    for (const char* name : {"slot-a", "slot-b"})
        in_slot([&](Slot& slot) {
            MachineSpec spec = bench_->sandbox_spec(name);
            put(spec, slot);
            auto machine = bench_->engine().restore(std::move(spec), bench_->state(), AfterLoad::run);
            ASSERT_OK(machine);
            EXPECT_EQ(Slot::hello(), "hello from the guest\n");
        });
}

TEST_F(MicrovmTest, ReclaimEndsWhatAnEarlierServerLeft) {
    auto machine = bench_->engine().boot(bench_->template_spec());
    ASSERT_OK(machine);
    std::vector<std::string> names;
    // The machine is this process's child, so somebody must reap it while it is waited for.
    std::thread reaper([&] { (void)(*machine)->wait(20s); });
    ASSERT_OK(reclaim_cgroups(bench_->options().cgroups, bench_->options().instance, &names));
    reaper.join();
    EXPECT_EQ(names.size(), 1U);
    EXPECT_FALSE((*machine)->alive());
    EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());
}

TEST_F(MicrovmTest, StraysOutsideTheirGroupAreFoundToo) {
    auto machine = bench_->engine().boot(bench_->template_spec());
    ASSERT_OK(machine);
    for (const auto& root : bench_->options().cgroups.roots())
        ASSERT_OK(write_control_file(root / "cgroup.procs", std::to_string((*machine)->pid())));
    EXPECT_EQ(find_stray_vmms(bench_->file("vmm")), std::vector<pid_t>{(*machine)->pid()});
    std::thread reaper([&] { (void)(*machine)->wait(20s); });
    ASSERT_OK(bench_->engine().reclaim());
    reaper.join();
    EXPECT_TRUE(find_stray_vmms(bench_->file("vmm")).empty());
}

TEST_F(MicrovmTest, ProbeAnswersWithinItsLimitAndRemembers) {
    ProbeOptions options;
    options.kernel = bench_->kernel();
    options.kernel.command_line = "console=ttyS0 quiet reboot=t panic=-1 mitigations=off";
    options.jail = bench_->jail();
    options.state_folder = bench_->options().data_folder;
    options.longest = 10s;
    AcceleratorChoice first = probe_accelerator(bench_->engine(), options);
    RecordProperty("accelerator", std::string(accelerator_name(first.accelerator)));
    RecordProperty("reason", first.reason);
    EXPECT_FALSE(first.reason.empty());
    if (!fs::exists("/dev/kvm")) return;
    AcceleratorChoice second = probe_accelerator(bench_->engine(), options);
    EXPECT_TRUE(second.cached);
    EXPECT_EQ(second.accelerator, first.accelerator);
    EXPECT_EQ(second.reason, first.reason);
}

}  // namespace
}  // namespace gb::engine
