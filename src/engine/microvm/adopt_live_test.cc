// SPDX-License-Identifier: Apache-2.0
// Machines that outlive their server. A child process plays the server that is killed.
#include <thread>

#include <sys/wait.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/file.h"
#include "engine/microvm/strays.h"
#include "engine/microvm/test_machine.h"
#include "engine/process_facts.h"

namespace gb::engine {
namespace {

using namespace std::chrono_literals;

class AdoptTest : public ::testing::Test {
  protected:
    void SetUp() override {
        auto bench = testing::Bench::create();
        if (!bench && bench.error().code == ErrorCode::failed_precondition)
            GTEST_SKIP() << bench.error().message;
        ASSERT_OK(bench);
        bench_ = std::move(*bench);
        jail_ = bench_->jail();
    }
    void TearDown() override {
        if (!bench_) return;
        (void)bench_->engine().reclaim();
        EXPECT_TRUE(find_stray_vmms(bench_->file("vmm")).empty());
        EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());
    }

    // The same in the server that starts the machine and in the one that adopts it.
    MachineSpec spec() {
        MachineSpec out = bench_->template_spec();
        out.jail = jail_;
        out.monitor = bench_->file("monitor");
        return out;
    }

    // `serve` starts or adopts a machine in a process that is killed then. The trace of that machine.
    template <class F>
    ProcessTrace in_killed_server(F serve) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return {};
        UniqueFd read_end(ends[0]), write_end(ends[1]);
        const pid_t child = ::fork();
        if (child == 0) {
            auto engine = MicrovmEngine::create(bench_->options());
            std::unique_ptr<Machine> machine = engine ? serve(**engine) : nullptr;
            auto trace = machine ? machine->trace() : Result<ProcessTrace>(ProcessTrace{});
            if (trace)
                (void)write_all(write_end.get(), {reinterpret_cast<const char*>(&*trace), sizeof *trace});
            for (;;) ::pause();
        }
        write_end.reset();
        ProcessTrace trace;
        EXPECT_EQ(::read(read_end.get(), &trace, sizeof trace), static_cast<ssize_t>(sizeof trace));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        EXPECT_GT(trace.pid, 1) << "the server could not start a machine";
        return trace;
    }
    enum class Killed { at_once, when_the_guest_counts, when_it_was_stopped };
    ProcessTrace boot_in_killed_server(Killed when = Killed::at_once) {
        return in_killed_server([&](MicrovmEngine& engine) {
            auto machine = engine.boot(spec());
            const bool good = machine &&
                              (when == Killed::at_once || (*machine)->wait_console("count 2 ", 10min)) &&
                              (when != Killed::when_it_was_stopped || (*machine)->stop());
            return good ? std::move(*machine) : nullptr;
        });
    }

    std::unique_ptr<testing::Bench> bench_;
    JailSpec jail_;
};

TEST_F(AdoptTest, AMachineOutlivesItsServer) {
    const ProcessTrace trace = boot_in_killed_server(Killed::when_the_guest_counts);
    std::this_thread::sleep_for(500ms);  // the guest goes on printing for nobody
    ASSERT_EQ(::kill(trace.pid, 0), 0);
    auto machine = bench_->engine().adopt(spec(), trace);
    ASSERT_OK(machine);
    EXPECT_EQ((*machine)->pid(), trace.pid);
    EXPECT_TRUE((*machine)->alive());
    EXPECT_FALSE((*machine)->wait(10ms).has_value());
    EXPECT_TRUE((*machine)->wait_console("count 9 ", 10min)) << (*machine)->console_tail();
    EXPECT_GT(*(*machine)->private_bytes(), 0U);
    EXPECT_GT((*machine)->usage().memory_bytes, 0U);

    ASSERT_OK((*machine)->stop());
    std::this_thread::sleep_for(100ms);
    const std::string before = (*machine)->console_tail();
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ((*machine)->console_tail(), before);
    ASSERT_OK((*machine)->cont());
    EXPECT_TRUE((*machine)->wait_console("count 12 ", 10min)) << (*machine)->console_tail();

    ASSERT_OK((*machine)->kill());
    auto ended = (*machine)->wait(0ms);
    ASSERT_TRUE(ended.has_value());
    EXPECT_FALSE(ended->known) << "it was never this process's child";
    EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());
}

TEST_F(AdoptTest, AnAdoptedMachineIsCaptured) {
    const ProcessTrace trace = boot_in_killed_server();
    {
        auto machine = bench_->engine().adopt(spec(), trace);
        ASSERT_OK(machine);
        ASSERT_TRUE((*machine)->wait_console("count 6 ", 10min));
        ASSERT_OK((*machine)->capture(bench_->state()));
    }
    auto restored = bench_->engine().restore(bench_->sandbox_spec("again"), bench_->state(), AfterLoad::run);
    ASSERT_OK(restored);
    EXPECT_TRUE((*restored)->wait_console("memory intact", 10min)) << (*restored)->console_tail();
}

TEST_F(AdoptTest, OneServerAfterTheOtherIsKilled) {
    ProcessTrace trace = boot_in_killed_server();
    for (int i = 0; i < 3; ++i) {
        const ProcessTrace again = in_killed_server([&](MicrovmEngine& engine) {
            auto machine = engine.adopt(spec(), trace);
            return machine ? std::move(*machine) : nullptr;
        });
        EXPECT_EQ(again.pid, trace.pid);
        EXPECT_EQ(again.start_ticks, trace.start_ticks);
    }
    auto machine = bench_->engine().adopt(spec(), trace);
    ASSERT_OK(machine);
    EXPECT_TRUE((*machine)->wait_console("memory intact", 10min));
}

TEST_F(AdoptTest, AGuestThatWasStoppedGoesOn) {
    const ProcessTrace trace = boot_in_killed_server(Killed::when_it_was_stopped);
    auto machine = bench_->engine().adopt(spec(), trace);
    ASSERT_OK(machine);
    EXPECT_TRUE((*machine)->wait_console("count 4 ", 10min)) << (*machine)->console_tail();
}

TEST_F(AdoptTest, ItsEndIsSeen) {
    const ProcessTrace trace = boot_in_killed_server();
    auto machine = bench_->engine().adopt(spec(), trace);
    ASSERT_OK(machine);
    ::kill(trace.pid, SIGKILL);
    auto ended = (*machine)->wait(10s);
    ASSERT_TRUE(ended.has_value());
    EXPECT_FALSE(ended->known);
    EXPECT_FALSE((*machine)->alive());
    EXPECT_EQ((*machine)->stop().error().code, ErrorCode::unavailable);
}

TEST_F(AdoptTest, WhatIsLeftOnPurposeRunsOn) {
    auto first = bench_->engine().boot(spec());
    ASSERT_OK(first);
    auto trace = (*first)->trace();
    ASSERT_OK(trace);
    (*first)->leave();
    first->reset();
    auto machine = bench_->engine().adopt(spec(), *trace);
    ASSERT_OK(machine);
    EXPECT_TRUE((*machine)->wait_console("memory intact", 10min));
}

TEST_F(AdoptTest, ReclaimSparesWhatWasAdopted) {
    const ProcessTrace trace = boot_in_killed_server();
    auto machine = bench_->engine().adopt(spec(), trace);
    ASSERT_OK(machine);
    std::vector<std::string> reclaimed;
    ASSERT_OK(bench_->engine().reclaim(&reclaimed, {{jail_.cgroup_name, trace.pid}}));
    EXPECT_TRUE(reclaimed.empty());
    EXPECT_TRUE((*machine)->alive());
}

// Whatever does not fit is not taken, and nothing of it is left (TearDown looks).
TEST_F(AdoptTest, AnotherProcessIsNotTaken) {
    const ProcessTrace trace = boot_in_killed_server();
    ProcessTrace wrong = trace;
    ++wrong.start_ticks;
    EXPECT_EQ(bench_->engine().adopt(spec(), wrong).error().code, ErrorCode::failed_precondition);
    EXPECT_FALSE(bench_->engine().adopt(spec(), trace).has_value()) << "it has ended";
    EXPECT_FALSE(bench_->engine().adopt(spec(), {}).has_value());
    auto self = ProcessTrace{::getpid(), read_process_facts(::getpid())->start_ticks};
    EXPECT_EQ(bench_->engine().adopt(spec(), self).error().code, ErrorCode::failed_precondition);
}

TEST_F(AdoptTest, AnotherUserIsNotTaken) {
    const ProcessTrace trace = boot_in_killed_server();
    MachineSpec other = spec();
    ++other.jail.uid;
    EXPECT_EQ(bench_->engine().adopt(std::move(other), trace).error().code, ErrorCode::failed_precondition);
}

TEST_F(AdoptTest, AMachineWithoutItsMonitorIsNotTaken) {
    const ProcessTrace trace = boot_in_killed_server();
    MachineSpec other = spec();
    other.monitor = bench_->file("elsewhere");
    EXPECT_EQ(bench_->engine().adopt(std::move(other), trace).error().code, ErrorCode::not_found);
}

TEST_F(AdoptTest, AnotherVmmIsNotTaken) {
    const ProcessTrace trace = boot_in_killed_server();
    // As after an update of QEMU: the root that this engine uses has another file.
    const auto binary = bench_->engine().vmm_root().path / (kVmmBinary + 1);
    const auto aside = bench_->file("qemu");
    std::filesystem::rename(binary, aside);
    ASSERT_OK(copy_file_sparse(aside, binary, 0555));
    EXPECT_EQ(bench_->engine().adopt(spec(), trace).error().code, ErrorCode::failed_precondition);
}

}  // namespace
}  // namespace gb::engine
