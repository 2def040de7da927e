// SPDX-License-Identifier: Apache-2.0
#include "engine/cgroup.h"

#include <thread>

#include <sys/wait.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;

class FakeTree : public ::testing::Test {
  protected:
    void SetUp() override { fs::create_directories(root_); }
    void TearDown() override { fs::remove_all(root_); }
    void put(const fs::path& name, std::string_view text) {
        fs::create_directories((root_ / name).parent_path());
        ASSERT_TRUE(write_file_atomic(root_ / name, text).has_value());
    }
    std::string get(const fs::path& name) { return read_file(root_ / name).value_or("(none)"); }

    const fs::path root_ = fs::temp_directory_path() / ("glovebox-cgroup-" + random_id(8));
};

std::string written(CgroupVersion version, const CgroupLimits& limits, std::string_view file) {
    for (const ControlWrite& write : control_writes(version, limits))
        if (write.file == file) return write.value;
    return "(none)";
}

TEST(ControlWrites, VersionTwo) {
    const CgroupLimits limits{.memory_mib = 512, .cpu_percent = 150, .pids_max = 80, .cpu_weight = 50};
    const auto v2 = CgroupVersion::v2;
    EXPECT_EQ(written(v2, limits, "memory.max"), "536870912");
    EXPECT_EQ(written(v2, limits, "memory.swap.max"), "0");
    EXPECT_EQ(written(v2, limits, "memory.oom.group"), "1");
    EXPECT_EQ(written(v2, limits, "cpu.max"), "150000 100000");
    EXPECT_EQ(written(v2, limits, "cpu.weight"), "50");
    EXPECT_EQ(written(v2, limits, "pids.max"), "80");
    EXPECT_EQ(written(v2, {}, "cpu.max"), "max 100000") << "no limit is written as one";
    EXPECT_EQ(written(v2, {}, "memory.max"), "(none)");
}

TEST(ControlWrites, VersionOne) {
    const CgroupLimits limits{.memory_mib = 512, .cpu_percent = 50, .pids_max = 80, .cpu_weight = 50};
    const auto v1 = CgroupVersion::v1;
    EXPECT_EQ(written(v1, limits, "memory.limit_in_bytes"), "536870912");
    EXPECT_EQ(written(v1, limits, "memory.memsw.limit_in_bytes"), "536870912");
    EXPECT_EQ(written(v1, limits, "cpu.cfs_quota_us"), "50000");
    EXPECT_EQ(written(v1, limits, "cpu.shares"), "512");
    EXPECT_EQ(written(v1, limits, "pids.max"), "80");
    EXPECT_EQ(written(v1, {}, "cpu.cfs_quota_us"), "-1");
}

TEST_F(FakeTree, DetectsVersionTwo) {
    put("cgroup.controllers", "cpuset cpu io memory pids\n");
    auto layout = detect_cgroup_layout(root_);
    ASSERT_TRUE(layout.has_value());
    EXPECT_EQ(layout->version, CgroupVersion::v2);
    EXPECT_EQ(layout->roots(), std::vector<fs::path>{root_});
}

TEST_F(FakeTree, DetectsVersionOneBesideAnEmptyVersionTwo) {
    put("cgroup.controllers", "hugetlb\n");
    for (const char* controller : {"cpu", "memory", "pids"}) put(fs::path(controller) / "cgroup.procs", "");
    auto layout = detect_cgroup_layout(root_);
    ASSERT_TRUE(layout.has_value());
    EXPECT_EQ(layout->version, CgroupVersion::v1);
    EXPECT_EQ(layout->controllers.at("memory"), root_ / "memory");
    EXPECT_FALSE(layout->has("freezer"));
}

TEST_F(FakeTree, WeightDependsOnWhereTheServerStands) {
    for (const char* controller : {"cpu", "memory", "pids"}) put(fs::path(controller) / "cgroup.procs", "");
    auto weight = [&](std::string_view self) {
        put("self", self);
        return detect_cgroup_layout(root_, root_ / "self")->top_weight_percent;
    };
    const unsigned all = 100 * std::max(1U, std::thread::hardware_concurrency());
    EXPECT_EQ(weight("3:memory:/\n4:cpu,cpuacct:/\n0::/\n"), all) << "among the processes of the root";
    EXPECT_EQ(weight("3:memory:/\n4:cpu,cpuacct:/system.slice/glovebox.service\n0::/\n"), 100U);
    EXPECT_EQ(weight("4:cpuset:/\n"), 100U);
    EXPECT_EQ(weight("::\n:\n\n4\n"), 100U);
    put("cgroup.controllers", "cpu memory pids");
    EXPECT_EQ(weight("0::/\n"), all);
    EXPECT_EQ(weight("0::/user.slice\n"), 100U);
}

TEST_F(FakeTree, WithoutMemoryOrPidsThereIsNoLayout) {
    put("cgroup.controllers", "cpu memory\n");
    put("cpu/cgroup.procs", "");
    EXPECT_EQ(detect_cgroup_layout(root_).error().code, ErrorCode::failed_precondition);
}

TEST_F(FakeTree, VersionTwoDelegatesAndWrites) {
    for (const char* folder : {"", "glovebox", "glovebox/main"}) {
        put(fs::path(folder) / "cgroup.controllers", "cpu memory pids io\n");
        put(fs::path(folder) / "cgroup.subtree_control", "");
    }
    put("glovebox/cpu.weight", "100");
    auto layout = detect_cgroup_layout(root_, root_ / "self");
    ASSERT_TRUE(layout.has_value());
    layout->top_weight_percent = 250;
    // Only a kernel fills a new group with files: the fake stops at the first limit, after the delegation.
    auto made = Cgroup::create(*layout, "main", "s1", {.memory_mib = 64});
    ASSERT_FALSE(made.has_value());
    EXPECT_NE(made.error().message.find("glovebox/main/s1/memory.max"), std::string::npos)
        << made.error().message;
    EXPECT_FALSE(fs::exists(root_ / "glovebox/main/s1")) << "a group half made is removed";
    EXPECT_NE(get("glovebox/main/cgroup.subtree_control").find("+pids"), std::string::npos);
    EXPECT_EQ(get("glovebox/cpu.weight"), "250");

    for (const char* file :
         {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max", "cpu.weight"})
        put(fs::path("glovebox/main/s1") / file, "");
    put("glovebox/main/s1/cpu.stat", "usage_usec 12345\nuser_usec 5\n");
    put("glovebox/main/s1/memory.current", "4096\n");
    Cgroup group = Cgroup::open(*layout, "main", "s1");
    ASSERT_TRUE(group.set_limits({.memory_mib = 64, .cpu_percent = 100, .pids_max = 9}).has_value());
    EXPECT_EQ(get("glovebox/main/s1/memory.max"), "67108864");
    EXPECT_EQ(get("glovebox/main/s1/cpu.max"), "100000 100000");
    EXPECT_EQ(get("glovebox/main/s1/pids.max"), "9");
    EXPECT_EQ(group.usage().cpu_usec, 12345U);
    EXPECT_EQ(group.usage().memory_bytes, 4096U);
    EXPECT_EQ(list_cgroups(*layout, "main"), std::vector<std::string>{"s1"});
    fs::remove_all(root_ / "glovebox/main/s1");
}

TEST_F(FakeTree, NamesThatLeaveTheFolderAreRefused) {
    CgroupLayout layout{CgroupVersion::v2, {{"memory", root_}, {"pids", root_}}};
    for (const char* name : {"", ".", "..", "a/b", "../x", ".hidden", "a b", "\n"})
        EXPECT_EQ(Cgroup::create(layout, "main", name, {}).error().code, ErrorCode::invalid_argument) << name;
    EXPECT_EQ(Cgroup::create(layout, "../x", "a", {}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(Cgroup::create(layout, "main", std::string(65, 'a'), {}).error().code,
              ErrorCode::invalid_argument);
    EXPECT_EQ(reclaim_cgroups(layout, "..").error().code, ErrorCode::invalid_argument);
}

class RealCgroup : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "control groups are made by root";
        auto layout = detect_cgroup_layout();
        if (!layout) GTEST_SKIP() << layout.error().message;
        layout_ = *layout;
        auto probe = Cgroup::create(layout_, instance_, "probe", {.memory_mib = 64, .pids_max = 10});
        if (!probe) GTEST_SKIP() << probe.error().message;
    }
    void TearDown() override {
        for (const fs::path& root : layout_.roots()) ::rmdir((root / "glovebox" / instance_).c_str());
    }
    static pid_t sleeper() {
        const pid_t pid = ::fork();
        if (pid == 0)
            for (;;) ::pause();
        return pid;
    }
    CgroupLayout layout_;
    const std::string instance_ = "test-" + random_id(8);
};

TEST_F(RealCgroup, HoldsKillsAndDisappears) {
    auto group =
        Cgroup::create(layout_, instance_, "a", {.memory_mib = 64, .cpu_percent = 50, .pids_max = 10});
    ASSERT_TRUE(group.has_value()) << group.error().message;
    EXPECT_EQ(Cgroup::create(layout_, instance_, "a", {}).error().code, ErrorCode::already_exists);
    const pid_t pid = sleeper();
    ASSERT_TRUE(group->attach(pid).has_value());
    EXPECT_EQ(group->processes(), std::vector<pid_t>{pid});
    std::thread reaper([pid] { ::waitpid(pid, nullptr, 0); });
    EXPECT_TRUE(group->kill_all().has_value());
    reaper.join();
    EXPECT_TRUE(group->processes().empty());
    EXPECT_TRUE(group->remove().has_value());
    EXPECT_TRUE(group->remove().has_value());
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

TEST_F(RealCgroup, AnotherServersGroupsAreReclaimed) {
    std::vector<pid_t> pids;
    static auto& left = *new std::vector<Cgroup>;  // as if the server had died here: no destructor
    for (const char* name : {"x", "y"}) {
        auto group = Cgroup::create(layout_, instance_, name, {.memory_mib = 64, .pids_max = 10});
        ASSERT_TRUE(group.has_value());
        pids.push_back(sleeper());
        ASSERT_TRUE(group->attach(pids.back()).has_value());
        left.push_back(std::move(*group));
    }
    EXPECT_EQ(list_cgroups(layout_, instance_).size(), 2U);
    std::vector<std::string> names;
    std::thread reaper([&] {
        for (pid_t pid : pids) ::waitpid(pid, nullptr, 0);
    });
    EXPECT_TRUE(reclaim_cgroups(layout_, instance_, &names).has_value());
    reaper.join();
    EXPECT_EQ(names, (std::vector<std::string>{"x", "y"}));
    EXPECT_TRUE(list_cgroups(layout_, instance_).empty());
}

}  // namespace
}  // namespace gb::engine
