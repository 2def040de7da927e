// SPDX-License-Identifier: Apache-2.0
// Saves running machines whose memory is a private mapping, and brings them back.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <signal.h>

#include "base/assert_ok.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/eventually.h"
#include "base/file.h"
#include "engine/memory_delta.h"
#include "engine/microvm/test_machine.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// The last number the guest has printed, 0 before its first.
int counted(const Machine& machine) {
    const std::string console = machine.console_tail();
    const std::size_t at = console.rfind("count ");
    return at == std::string::npos ? 0 : std::atoi(console.c_str() + at + 6);
}

class SuspendTest : public ::testing::Test {
  protected:
    void SetUp() override {
        auto bench = testing::Bench::create();
        if (!bench && bench.error().code == ErrorCode::failed_precondition)
            GTEST_SKIP() << bench.error().message;
        ASSERT_OK(bench);
        bench_ = std::move(*bench);
        auto machine = bench_->engine().boot(bench_->template_spec());
        ASSERT_OK(machine);
        ASSERT_TRUE((*machine)->wait_console("count 3 ", 10min)) << (*machine)->console_tail();
        ASSERT_OK((*machine)->capture(bench_->state()));
    }

    MachineSpec sandbox(const std::string& name) {
        MachineSpec spec = bench_->sandbox_spec(name);
        spec.memory.image_id = "build-1";
        return spec;
    }
    // The same sandbox again, with the disk it has.
    MachineSpec again(const std::string& name) {
        MachineSpec spec = sandbox("unused");
        spec.disk.image = bench_->file(name + ".qcow2");
        return spec;
    }
    SavedFiles saved(const std::string& name) {
        return {bench_->file(name + ".bin"), bench_->file(name + ".delta")};
    }

    std::unique_ptr<Machine> start(const std::string& name) {
        auto machine = bench_->engine().restore(sandbox(name), bench_->state(), AfterLoad::run);
        EXPECT_TRUE(machine.has_value()) << machine.error().message;
        if (!machine) return nullptr;
        EXPECT_TRUE((*machine)->wait_console("count 5 ", 10min)) << (*machine)->console_tail();
        return *std::move(machine);
    }
    // It counts on, and says that its memory is what it was.
    void expect_running(Machine& machine) {
        const int now = counted(machine);
        EXPECT_TRUE(gb::test::eventually([&] { return counted(machine) > now; }))
            << machine.console_tail() << machine.vmm_log();
        EXPECT_EQ(machine.console_tail().find("CORRUPT"), std::string::npos) << machine.console_tail();
    }

    std::unique_ptr<testing::Bench> bench_;
};

TEST_F(SuspendTest, MemorySurvivesAndOnlyWrittenPagesAreSaved) {
    auto machine = start("a");
    ASSERT_NE(machine, nullptr);
    const int before = counted(*machine);
    auto result = machine->suspend(saved("a"), AfterSave::end, {});
    ASSERT_OK(result);
    EXPECT_FALSE(machine->alive());
    EXPECT_GT(result->state_bytes, 1000U);
    EXPECT_EQ(result->state_sha256, sha256_hex(*read_file(bench_->file("a.bin"))));
    EXPECT_GT(result->data_pages, 10U);
    EXPECT_LT(result->data_pages + result->zero_pages, 256U * 256) << "not all of the memory";
    EXPECT_EQ(result->memory_bytes, fs::file_size(bench_->file("a.delta")));

    auto resumed = bench_->engine().restore(
        again("a"), {bench_->file("a.bin"), bench_->file("a.delta"), result->memory_checksum},
        AfterLoad::run);
    ASSERT_OK(resumed);
    ASSERT_NO_FATAL_FAILURE(expect_running(**resumed));
    const std::string console = (*resumed)->console_tail();
    EXPECT_GE(std::atoi(console.c_str() + console.find("count ") + 6), before - 1)
        << "it goes on where it was";
    EXPECT_EQ(console.find("count 4 "), std::string::npos) << "it does not start at the template again";
}

TEST_F(SuspendTest, ASnapshotLeavesTheMachineRunningAndManyCanStartFromIt) {
    auto machine = start("parent");
    ASSERT_NE(machine, nullptr);
    bool called = false;
    auto result = machine->suspend(saved("snap"), AfterSave::run, [&](const SaveResult& so_far) -> Status {
        called = true;
        EXPECT_GT(so_far.data_pages, 0U);
        // The disk of this instant.
        return copy_file_sparse(bench_->file("parent.qcow2"), bench_->file("fork.qcow2"), 0600);
    });
    ASSERT_OK(result);
    EXPECT_TRUE(called);
    EXPECT_TRUE(machine->alive());
    expect_running(*machine);
    std::vector<std::unique_ptr<Machine>> forks;
    for (int i = 0; i < 2; ++i) {
        const std::string name = fmt::format("fork{}", i);
        ASSERT_OK(copy_file_sparse(bench_->file("fork.qcow2"), bench_->file(name + ".qcow2"), 0600));
        auto fork = bench_->engine().restore(again(name), saved("snap"), AfterLoad::run);
        ASSERT_OK(fork);
        forks.push_back(*std::move(fork));
    }
    for (auto& fork : forks) expect_running(*fork);
    expect_running(*machine);
}

TEST_F(SuspendTest, TwentyCycles) {
    auto machine = start("cycle");
    ASSERT_NE(machine, nullptr);
    int last = counted(*machine);
    for (int cycle = 0; cycle < 20; ++cycle) {
        auto result = machine->suspend(saved("cycle"), AfterSave::end, {});
        ASSERT_OK(result);
        auto resumed = bench_->engine().restore(again("cycle"), saved("cycle"), AfterLoad::run);
        ASSERT_OK(resumed);
        machine = *std::move(resumed);
        ASSERT_NO_FATAL_FAILURE(expect_running(*machine)) << cycle;
        EXPECT_GE(counted(*machine), last) << cycle;
        last = counted(*machine);
        EXPECT_LT(result->data_pages + result->zero_pages, 256U * 256);
    }
    EXPECT_GE(last, 25) << "it has counted in every cycle";
}

// A machine that waits, as one does that was made ahead of time.
TEST_F(SuspendTest, APreparedMachineLoadsWhatWasSavedAndStaysPaused) {
    auto machine = start("later");
    ASSERT_NE(machine, nullptr);
    ASSERT_OK(machine->suspend(saved("later"), AfterSave::end, {}));
    auto prepared = bench_->engine().prepare(again("later"));
    ASSERT_OK(prepared);
    ASSERT_OK((*prepared)->load(saved("later"), AfterLoad::stay_paused));
    EXPECT_FALSE((*prepared)->wait_console("count", 500ms));
    // Saved again without having run: complete in itself.
    ASSERT_OK((*prepared)->suspend(saved("later2"), AfterSave::end, {}));
    EXPECT_EQ(*read_file(bench_->file("later.delta")), *read_file(bench_->file("later2.delta")));
    auto resumed = bench_->engine().restore(again("later"), saved("later2"), AfterLoad::run);
    ASSERT_OK(resumed);
    expect_running(**resumed);
}

TEST_F(SuspendTest, AnErrorOnTheWayLeavesTheMachineRunning) {
    auto machine = start("s26");
    ASSERT_NE(machine, nullptr);
    auto refused =
        machine->suspend({bench_->file("s.bin"), bench_->file("no/such/folder/s.delta")}, AfterSave::end, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::not_found) << refused.error().message;
    expect_running(*machine);

    refused =
        machine->suspend({bench_->file("no/such/folder/s.bin"), bench_->file("s.delta")}, AfterSave::end, {});
    ASSERT_FALSE(refused.has_value());
    expect_running(*machine);

    for (AfterSave after : {AfterSave::end, AfterSave::run}) {
        refused = machine->suspend(saved("s"), after, [](const SaveResult&) {
            return fail(ErrorCode::no_space, "the disk is full");
        });
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, ErrorCode::no_space);
        expect_running(*machine);
    }
    ASSERT_OK(machine->suspend(saved("s"), AfterSave::end, {}));
    for (const auto& entry : fs::directory_iterator(bench_->file("")))
        EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_F(SuspendTest, ADeadMachineCannotBeSaved) {
    auto machine = start("dead");
    ASSERT_NE(machine, nullptr);
    ASSERT_EQ(::kill(machine->pid(), SIGKILL), 0);
    ASSERT_TRUE(machine->wait(10s).has_value());
    EXPECT_FALSE(machine->suspend(saved("dead"), AfterSave::end, {}).has_value());
    EXPECT_FALSE(fs::exists(bench_->file("dead.delta")));
}

TEST_F(SuspendTest, SharedOrNamelessMemoryCannotBeSaved) {
    auto booted = bench_->engine().restore(bench_->sandbox_spec("nameless"), bench_->state(), AfterLoad::run);
    ASSERT_OK(booted);
    EXPECT_EQ((*booted)->suspend(saved("n"), AfterSave::end, {}).error().code,
              ErrorCode::failed_precondition);
    expect_running(**booted);
}

TEST_F(SuspendTest, DamagedOrForeignMemoryIsRefusedAndNothingRuns) {
    auto machine = start("d");
    ASSERT_NE(machine, nullptr);
    auto result = machine->suspend(saved("d"), AfterSave::end, {});
    ASSERT_OK(result);
    const std::string good = *read_file(bench_->file("d.delta"));
    auto refused = [&](const SavedFiles& files, const char* id) -> Error {
        MachineSpec spec = again("d");
        spec.memory.image_id = id;
        auto resumed = bench_->engine().restore(std::move(spec), files, AfterLoad::run);
        EXPECT_FALSE(resumed.has_value());
        return resumed ? Error(ErrorCode::unknown, "it ran") : resumed.error();
    };
    std::string flipped = good;
    flipped[good.size() / 2] ^= 1;
    for (const std::string& bad : {std::string(), flipped, good.substr(0, good.size() - 40), good + "more"}) {
        ASSERT_OK(write_file_atomic(bench_->file("bad.delta"), bad));
        const Error error = refused({bench_->file("d.bin"), bench_->file("bad.delta")}, "build-1");
        EXPECT_EQ(error.code, ErrorCode::data_loss) << error.message;
        EXPECT_NE(error.message.find("saved memory"), std::string::npos) << error.message;
    }
    EXPECT_EQ(refused(saved("d"), "build-2").code, ErrorCode::failed_precondition);
    EXPECT_EQ(
        refused({bench_->file("d.bin"), bench_->file("d.delta"), result->memory_checksum ^ 1}, "build-1")
            .code,
        ErrorCode::data_loss);
    EXPECT_EQ(refused({bench_->file("d.bin"), bench_->file("none")}, "build-1").code, ErrorCode::not_found);
    ASSERT_OK(write_file_atomic(bench_->file("bad.bin"), read_file(bench_->file("d.bin"))->substr(0, 2000)));
    EXPECT_EQ(refused({bench_->file("bad.bin"), bench_->file("d.delta")}, "build-1").code,
              ErrorCode::data_loss);
    EXPECT_TRUE(list_cgroups(bench_->options().cgroups, bench_->options().instance).empty());

    // The refused attempts have not touched what is saved.
    auto resumed = bench_->engine().restore(again("d"), saved("d"), AfterLoad::run);
    ASSERT_OK(resumed);
    expect_running(**resumed);
}

TEST_F(SuspendTest, TwoProcessorsSurvive) {
    MachineSpec spec = bench_->template_spec();
    spec.cpu_count = 2;
    auto booted = bench_->engine().boot(std::move(spec));
    ASSERT_OK(booted);
    ASSERT_TRUE((*booted)->wait_console("count 2 ", 10min)) << (*booted)->console_tail();
    ASSERT_OK((*booted)->capture(bench_->state()));
    auto two = [&](MachineSpec s) {
        s.cpu_count = 2;
        return s;
    };
    auto machine = bench_->engine().restore(two(sandbox("two")), bench_->state(), AfterLoad::run);
    ASSERT_OK(machine);
    ASSERT_TRUE((*machine)->wait_console("count 4 ", 10min)) << (*machine)->console_tail();
    ASSERT_OK((*machine)->suspend(saved("two"), AfterSave::end, {}));
    auto resumed = bench_->engine().restore(two(again("two")), saved("two"), AfterLoad::run);
    ASSERT_OK(resumed);
    expect_running(**resumed);
}

}  // namespace
}  // namespace gb::engine
