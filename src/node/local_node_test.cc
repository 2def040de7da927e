// SPDX-License-Identifier: Apache-2.0
// Pauses and resumes real sandboxes; see local_node_fixture.h for what they need.
#include "node/local_node_fixture.h"

namespace gb {
namespace {

TEST_F(LocalNodeTest, MemoryDiskAndIdentityComeBackAndThePauseLeavesOnlyFiles) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    ASSERT_OK(put("/home/user/disk", "on the disk"));
    const int generation = std::stoi(get("/run/glovebox/generation").value_or("0"));
    const std::string boot = get("/proc/sys/kernel/random/boot_id").value_or("");
    EXPECT_EQ(held(), Ids{id_ + "+"});
    EXPECT_FALSE(resume().has_value()) << "it runs";
    ASSERT_OK(pause());
    EXPECT_EQ(held(), Ids{id_ + "-"});
    EXPECT_EQ(groups(), 0U);
    for (const char* name : {"disk.qcow2", "memory.delta", "state.bin", "paused.json", "egress.log"})
        EXPECT_TRUE(fs::exists(file(name))) << name;
    EXPECT_EQ(pause().error().code, ErrorCode::not_found);
    EXPECT_EQ(get("/dev/shm/memory").error().code, ErrorCode::not_found);
    EXPECT_TRUE(node_->decisions_after(id_, "", 10).has_value());

    ASSERT_OK(resume());
    EXPECT_EQ(held(), Ids{id_ + "+"});
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    EXPECT_EQ(get("/home/user/disk").value_or("gone"), "on the disk");
    EXPECT_EQ(get("/proc/sys/kernel/random/boot_id").value_or(""), boot) << "it was not booted";
    EXPECT_GT(std::stoi(get("/run/glovebox/generation").value_or("0")), generation)
        << "programs must seed again";
    for (const char* name : {"memory.delta", "state.bin", "paused.json"})
        EXPECT_FALSE(fs::exists(file(name))) << name;
    EXPECT_TRUE(exited_.empty()) << "a pause is no accident";
    ASSERT_OK(run(node_->destroy(id_)));
    EXPECT_FALSE(fs::exists(file("")));
}

TEST_F(LocalNodeTest, ManyCyclesAndRestartsOfTheServer) {
    for (int cycle = 0; cycle < 5; ++cycle) {
        ASSERT_OK(
            put(fmt::format("/dev/shm/{}", cycle), std::string(3'000'000, static_cast<char>('a' + cycle))));
        ASSERT_OK(pause());
        if (cycle % 2 == 1) ASSERT_NO_FATAL_FAILURE(restart());
        EXPECT_EQ(held(), Ids{id_ + "-"});
        ASSERT_OK(resume());
        for (int i = 0; i <= cycle; ++i)
            EXPECT_EQ(get(fmt::format("/dev/shm/{}", i)).value_or(""),
                      std::string(3'000'000, static_cast<char>('a' + i)));
    }
}

TEST_F(LocalNodeTest, ARestartRemovesWhatRanAndHalfPausesAndKeepsThePaused) {
    ASSERT_OK(pause());
    ASSERT_OK(make_dirs(data_ / "sandboxes" / "half"));
    for (const char* name : {"disk.qcow2", "memory.delta", "state.bin"})
        ASSERT_OK(write_file_atomic(data_ / "sandboxes" / "half" / name, "half"));
    ASSERT_NO_FATAL_FAILURE(restart());
    EXPECT_EQ(held(), Ids{id_ + "-"});
    EXPECT_FALSE(fs::exists(data_ / "sandboxes" / "half"));
    ASSERT_OK(resume());
    ASSERT_NO_FATAL_FAILURE(restart());
    EXPECT_TRUE(held().empty());
    EXPECT_EQ(resume().error().code, ErrorCode::not_found);
}

TEST_F(LocalNodeTest, DamageIsSaidAndTheSandboxStaysPausedUntilItIsDestroyed) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    ASSERT_OK(pause());
    const std::string delta = *read_file(file("memory.delta"));
    std::string bad = delta;
    bad[bad.size() / 2] ^= 4;
    ASSERT_OK(write_file_atomic(file("memory.delta"), bad));
    EXPECT_EQ(resume().error().code, ErrorCode::data_loss);
    EXPECT_EQ(groups(), 0U);
    ASSERT_OK(write_file_atomic(file("memory.delta"), delta));
    const std::string state = *read_file(file("state.bin"));
    bad = state;
    bad[100] ^= 4;
    ASSERT_OK(write_file_atomic(file("state.bin"), bad));
    EXPECT_EQ(resume().error().code, ErrorCode::data_loss);
    ASSERT_OK(write_file_atomic(file("state.bin"), state));
    EXPECT_EQ(held(), Ids{id_ + "-"});
    ASSERT_OK(resume());
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");

    ASSERT_OK(pause());
    for (const char* name : {"memory.delta", "disk.qcow2"}) fs::remove(file(name));
    EXPECT_EQ(resume().error().code, ErrorCode::data_loss);
    ASSERT_NO_FATAL_FAILURE(restart());
    EXPECT_EQ(held(), Ids{id_ + "-"}) << "a damaged one is its owner's to remove";
    ASSERT_OK(run(node_->destroy(id_)));
    EXPECT_FALSE(fs::exists(file("")));
    ASSERT_OK(run(node_->destroy(id_)));
    EXPECT_TRUE(held().empty());
}

TEST_F(LocalNodeTest, APauseThatFailsLeavesItRunning) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    // A folder has the name that the file needs.
    ASSERT_OK(make_dirs(file("memory.delta") / "in the way"));
    EXPECT_FALSE(pause().has_value());
    EXPECT_EQ(held(), Ids{id_ + "+"});
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    EXPECT_FALSE(fs::exists(file("paused.json")));
    ASSERT_OK(remove_tree(file("memory.delta")));
    ASSERT_OK(pause());
    ASSERT_OK(resume());
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    EXPECT_TRUE(exited_.empty());
}

// Its guest has run and may have written its disk when the node gives up: it is paused as it is by then.
TEST_F(LocalNodeTest, AResumeThatFailsWhenTheGuestRunsPausesItAnew) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    ASSERT_OK(pause());
    const std::string before = *read_file(file("paused.json"));
    SandboxSpec refused = spec(id_);
    refused.env_vars["TOO_LONG"] = std::string(5'000'000, 'x');  // for the agent
    EXPECT_FALSE(run(node_->resume(refused)).has_value());
    EXPECT_EQ(held(), Ids{id_ + "-"});
    EXPECT_EQ(groups(), 0U);
    EXPECT_NE(*read_file(file("paused.json")), before);
    ASSERT_OK(resume());
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    EXPECT_TRUE(exited_.empty());
}

TEST_F(LocalNodeTest, APolicyThatIsNoneLeavesItPaused) {
    ASSERT_OK(pause());
    SandboxSpec bad = spec(id_);
    bad.network.deny_out = {"not an address"};
    EXPECT_EQ(run(node_->resume(bad)).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(held(), Ids{id_ + "-"});
    ASSERT_OK(resume());
    ASSERT_OK(run(node_->destroy("../sandboxes")));
    EXPECT_EQ(held(), Ids{id_ + "+"}) << "names are no paths";
}

// kill -9 of the server between the guest's going on and the removal of the manifest: the disk is newer than
// the memory.
TEST_F(LocalNodeTest, AHalfResumedSandboxIsNotTakenForAPausedOne) {
    ASSERT_OK(pause());
    fs::last_write_time(file("disk.qcow2"), fs::file_time_type::clock::now());
    EXPECT_EQ(resume().error().code, ErrorCode::data_loss);
    ASSERT_NO_FATAL_FAILURE(restart());
    EXPECT_TRUE(held().empty());
    EXPECT_FALSE(fs::exists(file("")));
}

TEST_F(LocalNodeTest, ADestroyDuringAPauseLeavesNothing) {
    ASSERT_OK(put("/dev/shm/memory", std::string(40'000'000, 'x')));
    auto pausing = asio::co_spawn(io_, node_->pause(id_, PauseMode::with_memory), asio::use_future);
    std::this_thread::sleep_for(10ms);
    ASSERT_OK(run(node_->destroy(id_)));
    (void)pausing.get();
    EXPECT_TRUE(held().empty());
    EXPECT_FALSE(fs::exists(file("")));
    EXPECT_EQ(groups(), 0U);
}

TEST_F(LocalNodeTest, APausedSandboxOutlivesItsTemplatesBuild) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    if (!fs::exists(file("base/memory.img"))) GTEST_SKIP() << "templates are on another file system";
    ASSERT_OK(pause());
    close();
    // A folder of templates that has only newer builds.
    NodeOptions options;
    options.data_dir = data_;
    options.templates_dir = data_ / "no-templates";
    options.ready_slots = 0;
    auto node = LocalNode::open(io_.get_executor(), pool_, options);
    ASSERT_OK(node);
    node_ = *std::move(node);
    ASSERT_OK(resume());
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    ASSERT_OK(pause());
    ASSERT_OK(resume());
}

TEST_F(LocalNodeTest, WithoutMemoryItBootsAgainFromItsDisk) {
    auto base = TemplateStore(templates_folder()).find("base");
    if (!fs::exists(base->kernel())) {
        EXPECT_EQ(pause(PauseMode::filesystem_only).error().code, ErrorCode::unimplemented);
        EXPECT_EQ(held(), Ids{id_ + "+"});
        EXPECT_TRUE(get("/proc/uptime").has_value());
        GTEST_SKIP() << "the template has no kernel";
    }
    const std::string boot = get("/proc/sys/kernel/random/boot_id").value_or("");
    ASSERT_OK(put("/home/user/disk", std::string(5'000'000, 'd')));
    ASSERT_OK(put("/dev/shm/memory", "in memory"));

    // A pause that fails thaws the disk again: the guest can write.
    ASSERT_OK(make_dirs(file("paused.json") / "in the way"));
    EXPECT_FALSE(pause(PauseMode::filesystem_only).has_value());
    ASSERT_OK(remove_tree(file("paused.json")));
    ASSERT_OK(put("/home/user/more", "after the pause that failed"));

    ASSERT_OK(pause(PauseMode::filesystem_only));
    EXPECT_EQ(held(), Ids{id_ + "-"});
    EXPECT_FALSE(fs::exists(file("memory.delta")));
    ASSERT_NO_FATAL_FAILURE(restart());
    ASSERT_OK(resume());
    EXPECT_EQ(get("/home/user/disk").value_or(""), std::string(5'000'000, 'd'));
    EXPECT_EQ(get("/home/user/more").value_or(""), "after the pause that failed");
    EXPECT_FALSE(get("/dev/shm/memory").has_value());
    EXPECT_NE(get("/proc/sys/kernel/random/boot_id").value_or(boot), boot);

    // What was booted can be paused with its memory like any other.
    ASSERT_OK(put("/dev/shm/memory", "in memory again"));
    ASSERT_OK(pause());
    ASSERT_OK(resume());
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory again");
    ASSERT_OK(pause(PauseMode::filesystem_only));
    ASSERT_OK(resume());
    EXPECT_EQ(get("/home/user/more").value_or(""), "after the pause that failed");
}

}  // namespace
}  // namespace gb
