// SPDX-License-Identifier: Apache-2.0
// Copies real sandboxes that run; see local_node_fixture.h for what they need.
#include "node/local_node_fixture.h"

namespace gb {
namespace {

class SnapshotLiveTest : public LocalNodeTest {
  protected:
    SnapshotSpec copy_spec(SnapshotSpec::Keep keep = SnapshotSpec::Keep::durable) const {
        return {id_, random_uuid(), "snapshottemplate0000", "copy", {{"OF_PARENT", "yes"}}, keep};
    }
    Result<std::string> copy(SnapshotSpec::Keep keep = SnapshotSpec::Keep::durable) {
        SnapshotSpec spec = copy_spec(keep);
        Status done = run(node_->snapshot(spec));
        if (!done) return std::unexpected(done.error());
        return spec.build_id;
    }
    Status start_from(const std::string& build_id, const std::string& id, const std::string& token = "") {
        SandboxSpec out = spec(id);
        out.snapshot_build = build_id;
        out.access_token = token;
        return run(node_->create(out));
    }
    fs::path build(const std::string& build_id, std::string_view name = "") const {
        return data_ / "snapshots" / build_id / name;
    }
    static std::string other() { return "i" + random_id(19); }
};

TEST_F(SnapshotLiveTest, TheCopyHasMemoryAndDiskOfThatMomentAndTheSourceRunsOn) {
    ASSERT_OK(put("/dev/shm/memory", "then"));
    ASSERT_OK(put("/home/user/disk", std::string(3'000'000, 'd')));
    auto build_id = copy();
    ASSERT_OK(build_id);
    EXPECT_EQ(held(), Ids{id_ + "+"});
    EXPECT_EQ(*node_->snapshots(), Ids{*build_id});
    ASSERT_OK(put("/dev/shm/memory", "later"));
    ASSERT_OK(put("/home/user/disk", "later"));

    const std::string a = other(), b = other();
    ASSERT_OK(start_from(*build_id, a, "token of a"));
    ASSERT_OK(start_from(*build_id, b, "token of b"));
    for (const auto& [id, token] : {std::pair(a, "token of a"), std::pair(b, "token of b")}) {
        EXPECT_EQ(get_of(id, "/dev/shm/memory", token).value_or("gone"), "then");
        EXPECT_EQ(get_of(id, "/home/user/disk", token).value_or("gone"), std::string(3'000'000, 'd'));
        EXPECT_FALSE(get_of(id, "/dev/shm/memory").has_value()) << "it asks for its own token";
    }
    EXPECT_FALSE(get_of(a, "/dev/shm/memory", "token of b").has_value());
    ASSERT_OK(put_to(a, "/dev/shm/memory", "of a", "token of a"));
    EXPECT_EQ(get_of(b, "/dev/shm/memory", "token of b").value_or("gone"), "then");
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "later");
    const auto name_of = [&](const std::string& id, const std::string& token) {
        return get_of(id, "/proc/sys/kernel/hostname", token).value_or("");
    };
    EXPECT_NE(name_of(a, "token of a"), name_of(b, "token of b"));
    EXPECT_NE(get_of(a, "/run/glovebox/generation", "token of a").value_or(""),
              get("/run/glovebox/generation").value_or(""));
    EXPECT_TRUE(exited_.empty());
}

TEST_F(SnapshotLiveTest, ItOutlivesItsSourceARestartAndItsOwnRemovalInThoseThatWereStarted) {
    ASSERT_OK(put("/dev/shm/memory", "then"));
    auto build_id = copy();
    ASSERT_OK(build_id);
    ASSERT_OK(run(node_->destroy(id_)));
    ASSERT_OK(make_dirs(data_ / "snapshots" / ".new-unfinished"));
    ASSERT_NO_FATAL_FAILURE(restart());
    EXPECT_EQ(*node_->snapshots(), Ids{*build_id});
    EXPECT_FALSE(fs::exists(data_ / "snapshots" / ".new-unfinished"));
    const std::string a = other();
    ASSERT_OK(start_from(*build_id, a));
    ASSERT_OK(run(node_->remove_snapshot(*build_id)));
    ASSERT_OK(run(node_->remove_snapshot(*build_id)));
    EXPECT_FALSE(fs::exists(build(*build_id)));
    EXPECT_EQ(start_from(*build_id, other()).error().code, ErrorCode::not_found);

    ASSERT_OK(run(node_->pause(a, PauseMode::with_memory)));
    ASSERT_NO_FATAL_FAILURE(restart());
    SandboxSpec again = spec(a);
    ASSERT_OK(run(node_->resume(again)));
    EXPECT_EQ(get_of(a, "/dev/shm/memory").value_or("gone"), "then");
}

TEST_F(SnapshotLiveTest, CopiesOfCopiesAreNoChain) {
    ASSERT_OK(put("/dev/shm/first", "1"));
    auto one = copy(SnapshotSpec::Keep::for_now);
    ASSERT_OK(one);
    const std::string a = other();
    ASSERT_OK(start_from(*one, a));
    ASSERT_OK(put_to(a, "/dev/shm/second", "2"));
    SnapshotSpec second = copy_spec();
    second.sandbox_id = a;
    ASSERT_OK(run(node_->snapshot(second)));
    ASSERT_OK(run(node_->remove_snapshot(*one)));
    ASSERT_OK(run(node_->destroy(a)));
    const std::string b = other();
    ASSERT_OK(start_from(second.build_id, b));
    EXPECT_EQ(get_of(b, "/dev/shm/first").value_or("gone"), "1");
    EXPECT_EQ(get_of(b, "/dev/shm/second").value_or("gone"), "2");
    // And one without memory, of one that was started from a copy.
    ASSERT_OK(put_to(b, "/home/user/disk", "kept"));
    ASSERT_OK(run(node_->pause(b, PauseMode::filesystem_only)));
    ASSERT_OK(run(node_->resume(spec(b))));
    EXPECT_EQ(get_of(b, "/home/user/disk").value_or("gone"), "kept");
}

TEST_F(SnapshotLiveTest, ACopyThatFailsLeavesItRunningAndNothingElse) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    SnapshotSpec spec = copy_spec();
    // The file of the copy's disk is a folder.
    ASSERT_OK(make_dirs(data_ / "snapshots" / (".new-" + spec.build_id) / "overlay.qcow2"));
    EXPECT_FALSE(run(node_->snapshot(spec)).has_value());
    EXPECT_TRUE(node_->snapshots()->empty());
    EXPECT_FALSE(fs::exists(data_ / "snapshots" / (".new-" + spec.build_id)));
    EXPECT_EQ(get("/dev/shm/memory").value_or("gone"), "in memory");
    spec.build_id = "../sandboxes";
    EXPECT_EQ(run(node_->snapshot(spec)).error().code, ErrorCode::invalid_argument);
    spec = copy_spec();
    spec.sandbox_id = other();
    EXPECT_EQ(run(node_->snapshot(spec)).error().code, ErrorCode::not_found);
    EXPECT_TRUE(exited_.empty());
}

TEST_F(SnapshotLiveTest, WithoutMemoryThoseThatStartFromItBoot) {
    ASSERT_OK(put("/dev/shm/memory", "in memory"));
    ASSERT_OK(put("/home/user/disk", "on the disk"));
    SnapshotSpec copied = copy_spec();
    copied.mode = PauseMode::filesystem_only;
    Status taken = run(node_->snapshot(copied));
    if (!taken && taken.error().code == ErrorCode::unimplemented) GTEST_SKIP() << taken.error().message;
    ASSERT_OK(taken);
    EXPECT_FALSE(fs::exists(build(copied.build_id, "memory.delta")));
    ASSERT_OK(put("/home/user/disk", "later"));  // it runs on and can write
    const std::string a = other();
    ASSERT_OK(start_from(copied.build_id, a));
    EXPECT_EQ(get_of(a, "/home/user/disk").value_or("gone"), "on the disk");
    EXPECT_FALSE(get_of(a, "/dev/shm/memory").has_value());
    EXPECT_NE(get_of(a, "/proc/sys/kernel/random/boot_id").value_or(""),
              get("/proc/sys/kernel/random/boot_id").value_or(""));
    // Like any other from there on.
    ASSERT_OK(put_to(a, "/dev/shm/memory", "of a"));
    ASSERT_OK(run(node_->pause(a, PauseMode::with_memory)));
    ASSERT_OK(run(node_->resume(spec(a))));
    EXPECT_EQ(get_of(a, "/dev/shm/memory").value_or("gone"), "of a");
}

TEST_F(SnapshotLiveTest, DamageIsSaid) {
    auto build_id = copy();
    ASSERT_OK(build_id);
    for (const char* name : {"memory.delta", "state.bin"}) {
        const std::string good = *read_file(build(*build_id, name));
        std::string bad = good;
        bad[bad.size() / 2] ^= 4;
        ASSERT_OK(write_file_atomic(build(*build_id, name), bad));
        EXPECT_FALSE(start_from(*build_id, other()).has_value()) << name;
        bad.resize(bad.size() - 1);
        ASSERT_OK(write_file_atomic(build(*build_id, name), bad));
        EXPECT_EQ(start_from(*build_id, other()).error().code, ErrorCode::data_loss) << name;
        ASSERT_OK(write_file_atomic(build(*build_id, name), good));
    }
    EXPECT_EQ(held(), Ids{id_ + "+"});
    EXPECT_EQ(groups(), 1U);
    ASSERT_OK(start_from(*build_id, other()));
}

TEST_F(SnapshotLiveTest, AKillDuringACopyLeavesNothing) {
    ASSERT_OK(put("/dev/shm/memory", std::string(40'000'000, 'x')));
    auto copying = asio::co_spawn(io_, node_->snapshot(copy_spec()), asio::use_future);
    std::this_thread::sleep_for(10ms);
    ASSERT_OK(run(node_->destroy(id_)));
    (void)copying.get();
    EXPECT_TRUE(held().empty());
    EXPECT_EQ(groups(), 0U);
}

}  // namespace
}  // namespace gb
