// SPDX-License-Identifier: Apache-2.0
#include "engine/jail.h"

#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"
#include "engine/jail_child.h"
#include "engine/microvm/vmm_root.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A root with the shell in it: what runs inside can say what it sees.
class JailTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "jails are made by root";
        auto layout = detect_cgroup_layout();
        if (!layout) GTEST_SKIP() << layout.error().message;
        layout_ = *layout;
        fs::create_directories(root_ / "bin");
        fs::create_directories(root_ / "dev");
        fs::create_directories(root_ / "vm");
        for (const char* program : {"/bin/sh", "/bin/cat"}) add(program);
        ASSERT_TRUE(write_file_atomic(root_ / "vm/file", "").has_value());
        ASSERT_TRUE(write_file_atomic(folder_ / "mine", "content of mine").has_value());
    }
    void TearDown() override {
        for (const fs::path& root : layout_.roots()) ::rmdir((root / "glovebox" / instance_).c_str());
        fs::remove_all(folder_);
    }
    void add(const fs::path& program) {
        fs::copy_file(program, root_ / program.relative_path(), fs::copy_options::overwrite_existing);
        auto list = run_checked({"/lib64/ld-linux-x86-64.so.2", "--list", program.string()});
        ASSERT_TRUE(list.has_value());
        auto libraries = parse_loader_list(list->out);
        libraries.emplace_back("/lib64/ld-linux-x86-64.so.2");
        for (const fs::path& library : libraries) {
            fs::create_directories((root_ / library.relative_path()).parent_path());
            fs::copy_file(library, root_ / library.relative_path(), fs::copy_options::overwrite_existing);
        }
    }
    JailSpec spec() {
        JailSpec out;
        out.uid = out.gid = 712'345;
        out.cgroup_name = "jail-" + random_id(6);
        out.limits = {.memory_mib = 64, .pids_max = 8};
        return out;
    }
    Result<JailedProcess> start(const JailSpec& jail, JailCommand command) {
        command.root = root_;
        GB_TRY_ASSIGN(Cgroup group, Cgroup::create(layout_, instance_, jail.cgroup_name, jail.limits));
        return JailedProcess::start(jail, command, std::move(group));
    }
    // Runs a shell script inside, returns what it printed.
    std::string shell(const std::string& script, std::vector<BindMount> mounts = {}) {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd read_end(ends[0]), write_end(ends[1]);
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd input(ends[0]), go(ends[1]);
        JailCommand command;
        command.argv = {"/bin/sh", "-c", "read go; " + script};  // when its limits hold
        command.env = {"WHO=jail"};
        command.mounts = std::move(mounts);
        command.devices = {"/dev/null"};
        command.descriptors = {input.get(), write_end.get(), write_end.get()};
        auto process = start(spec(), std::move(command));
        EXPECT_TRUE(process.has_value()) << process.error().message;
        if (!process) return {};
        write_end.reset();
        go.reset();
        std::string out(4096, '\0');
        std::size_t size = 0;
        for (ssize_t n; (n = ::read(read_end.get(), out.data() + size, out.size() - size)) > 0;)
            size += static_cast<std::size_t>(n);
        out.resize(size);
        EXPECT_TRUE(process->wait(5s).has_value());
        return out;
    }

    const fs::path folder_ = fs::temp_directory_path() / ("glovebox-jail-" + random_id(8));
    const fs::path root_ = folder_ / "root";
    const std::string instance_ = "test-" + random_id(8);
    CgroupLayout layout_;
};

TEST_F(JailTest, SeesItsRootAndNothingElse) {
    EXPECT_EQ(shell("echo /* $$ $WHO $HOME"), "/bin /dev /lib /lib64 /vm 1 jail\n");
}

TEST_F(JailTest, CannotWriteItsRoot) {
    EXPECT_NE(shell("echo x >/bin/new").find("Read-only"), std::string::npos);
    EXPECT_NE(shell("echo x >/dev/new").find("annot create"), std::string::npos);
    EXPECT_EQ(shell("echo x >/dev/null && echo fine"), "fine\n");
}

TEST_F(JailTest, MountsAreReadOnlyUnlessSaid) {
    ::chmod((folder_ / "mine").c_str(), 0666);
    EXPECT_EQ(shell("cat /vm/file", {{folder_ / "mine", "/vm/file"}}), "content of mine");
    EXPECT_NE(shell("echo x >/vm/file", {{folder_ / "mine", "/vm/file"}}).find("annot create"),
              std::string::npos);
    EXPECT_EQ(shell("echo new >/vm/file; cat /vm/file", {{folder_ / "mine", "/vm/file", true}}), "new\n");
    EXPECT_EQ(*read_file(folder_ / "mine"), "new\n");
}

TEST_F(JailTest, InheritsOnlyWhatIsGiven) {
    UniqueFd secret(::open("/etc/passwd", O_RDONLY));  // not even close-on-exec
    EXPECT_EQ(shell(fmt::format("cat <&{} || echo closed", secret.get())).find("root:"), std::string::npos);
}

TEST_F(JailTest, FailuresAreNamedAndLeaveNothing) {
    JailCommand command;
    command.argv = {"/bin/none"};
    command.descriptors = {-1, -1, -1};
    auto none = start(spec(), command);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, ErrorCode::not_found);
    EXPECT_NE(none.error().message.find("exec /bin/none"), std::string::npos) << none.error().message;

    command.argv = {"/bin/sh"};
    command.mounts = {{folder_ / "missing", "/vm/file"}};
    auto missing = start(spec(), command);
    ASSERT_FALSE(missing.has_value());
    EXPECT_NE(missing.error().message.find("missing at /vm/file"), std::string::npos)
        << missing.error().message;

    command.mounts = {{folder_ / "mine", "/vm/../../x"}};
    EXPECT_EQ(start(spec(), command).error().code, ErrorCode::invalid_argument);
    command.mounts.clear();
    command.devices = {"/dev/none"};
    EXPECT_EQ(start(spec(), command).error().code, ErrorCode::not_found);
    command.devices.clear();
    JailSpec root = spec();
    root.uid = 0;
    EXPECT_EQ(start(root, command).error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

TEST_F(JailTest, KillTakesEverythingInIt) {
    JailCommand command;
    command.argv = {"/bin/sh", "-c", "(while :; do :; done) & (while :; do :; done) & while :; do :; done"};
    command.descriptors = {-1, -1, -1};
    auto process = start(spec(), command);
    ASSERT_TRUE(process.has_value()) << process.error().message;
    EXPECT_TRUE(process->alive());
    EXPECT_FALSE(process->wait(20ms).has_value());
    EXPECT_GT(*process->private_bytes(), 0U);
    std::thread other([&] { EXPECT_TRUE(process->kill().has_value()); });
    EXPECT_TRUE(process->kill().has_value());
    other.join();
    auto ended = process->wait(0ms);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->signal, SIGKILL);
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

TEST_F(JailTest, WhatIsLeftRunsOnAndIsTakenOver) {
    JailCommand command;
    command.argv = {"/bin/sh", "-c", "while :; do :; done"};
    command.descriptors = {-1, -1, -1};
    const JailSpec jail = spec();
    auto left = [&] {
        auto process = start(jail, command);
        EXPECT_TRUE(process.has_value()) << process.error().message;
        ProcessTrace trace = process->trace().value_or(ProcessTrace{});
        process->leave();
        EXPECT_TRUE(process->kill().has_value()) << "nothing to do any more";
        return trace;
    };
    auto adopt = [&](const ProcessTrace& trace, uid_t uid, const std::string& name) {
        return JailedProcess::adopt(trace, uid, Cgroup::open(layout_, instance_, name));
    };
    ProcessTrace trace = left();
    {
        auto process = adopt(trace, jail.uid, jail.cgroup_name);
        ASSERT_TRUE(process.has_value()) << process.error().message;
        EXPECT_TRUE(process->alive());
        EXPECT_EQ(process->trace()->start_ticks, trace.start_ticks);
        EXPECT_TRUE(process->kill().has_value());
        EXPECT_EQ(process->wait(0ms)->signal, SIGKILL);
    }
    EXPECT_EQ(adopt(trace, jail.uid, jail.cgroup_name).error().code, ErrorCode::not_found) << "it is gone";

    // What does not fit is not taken, and what was named ends.
    using enum ErrorCode;
    trace = left();
    EXPECT_EQ(adopt({trace.pid, trace.start_ticks - 1}, jail.uid, jail.cgroup_name).error().code,
              failed_precondition);
    trace = left();
    EXPECT_EQ(adopt(trace, jail.uid + 1, jail.cgroup_name).error().code, failed_precondition);
    trace = left();
    EXPECT_EQ(adopt(trace, jail.uid, "another").error().code, failed_precondition);
    EXPECT_TRUE(adopt(trace, jail.uid, jail.cgroup_name).has_value());
    EXPECT_EQ(adopt({1, 0}, 0, jail.cgroup_name).error().code, invalid_argument);
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

TEST_F(JailTest, EndsWithItsStarterWhereThatIsAsked) {
    JailCommand command;
    command.argv = {"/bin/sh", "-c", "while :; do :; done"};
    command.descriptors = {-1, -1, -1};
    JailSpec jail = spec();
    jail.end_with_starter = true;
    std::optional<JailedProcess> process;
    std::thread([&] {
        auto started = start(jail, command);
        ASSERT_TRUE(started.has_value()) << started.error().message;
        process.emplace(*std::move(started));
        EXPECT_TRUE(process->alive());
    }).join();
    ASSERT_TRUE(process);
    auto ended = process->wait(10min);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->signal, SIGKILL);
}

// Where only version 2's own files can be had and none of its controllers, birth and kill can still be tried.
TEST_F(JailTest, IsBornInAGroupOfVersionTwo) {
    fs::path mount;
    for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        if (fs::exists(fs::path(path) / "cgroup.controllers")) mount = path;
    if (mount.empty()) GTEST_SKIP() << "no control groups of version 2 here";
    layout_ = {CgroupVersion::v2, {{"none", mount}}};
    JailCommand command;
    command.argv = {"/bin/sh", "-c", "while :; do :; done"};
    command.descriptors = {-1, -1, -1};
    JailSpec jail = spec();
    jail.limits = {};
    auto process = start(jail, command);
    if (!process) GTEST_SKIP() << process.error().message;
    EXPECT_EQ(Cgroup::open(layout_, instance_, jail.cgroup_name).processes(),
              std::vector<pid_t>{process->pid()});
    std::thread reaper([&] { EXPECT_EQ(process->wait(10s)->signal, SIGKILL); });
    EXPECT_TRUE(reclaim_cgroups(layout_, instance_).has_value());
    reaper.join();
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

TEST_F(JailTest, ExitCodesAreKept) {
    JailCommand command;
    command.argv = {"/bin/sh", "-c", "exit 7"};
    command.descriptors = {-1, -1, -1};
    auto process = start(spec(), command);
    ASSERT_TRUE(process.has_value());
    auto ended = process->wait(5s);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->code, 7);
    EXPECT_EQ(ended->signal, 0);
}

TEST_F(JailTest, TasksAreLimited) {
    const std::string out =
        shell("i=0; while [ $i -lt 30 ]; do (while :; do :; done) & i=$((i+1)); done; echo unlimited");
    EXPECT_EQ(out.find("unlimited"), std::string::npos) << out;
}

}  // namespace
}  // namespace gb::engine
