// SPDX-License-Identifier: Apache-2.0
// Running sandboxes outlive the server that made them. Needs what local_node_test.cc needs.
#include "node/live_fixture.h"

namespace gb::live {
namespace {

TEST_F(RestartTest, ASandboxGoesOnWithItsMemoryItsPolicyAndItsLog) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    EXPECT_EQ(guest("echo in memory > /dev/shm/kept; sleep 1000 & disown; echo $!").exit_code, 0);
    EXPECT_THAT(denied(), HasSubstr("refused")) << "with no server";
    EXPECT_THAT(run_checked({"ip", "route", "show", "type", "unreachable"})->out, HasSubstr(metric_));

    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_EQ(server.held(), std::vector<std::string>{id_ + "+"});
    EXPECT_EQ(guest("cat /dev/shm/kept; pgrep -c sleep").out, "in memory\n1\n");
    EXPECT_THAT(denied(), HasSubstr("refused"));
    EXPECT_TRUE(server.connects(id_).has_value());
    EXPECT_EQ(server.node().isolation(id_)->isolation_class, "microvm");
    EXPECT_GT(server.node().usage(id_)->private_bytes, 1U << 20);
    EXPECT_THAT(decisions(server, id_, {"8.8.8.8", "deny 8.8.8.0/24"}),
                Contains(testing::AllOf(HasSubstr("8.8.8.8"), HasSubstr("deny 8.8.8.0/24"))));

    ASSERT_OK(server.run(server.node().destroy(id_)));
    EXPECT_THAT(server.held(), IsEmpty());
    EXPECT_THAT(groups(), IsEmpty());
    EXPECT_FALSE(fs::exists(data_ / "sandboxes" / id_));
    // A new one lives beside what was there before.
    ASSERT_OK(server.run(server.node().create(spec())));
}

TEST_F(RestartTest, AServerThatLeavesEndsNothing) {
    {
        Server server(data_);
        ASSERT_TRUE(server.opened()) << server.error.message;
        ASSERT_OK(server.run(server.node().create(spec())));
        pid_ = engine::find_stray_vmms(data_ / "vmm").front();
        EXPECT_EQ(guest("echo in memory > /dev/shm/kept").exit_code, 0);
        server.stop(true);
    }
    EXPECT_THAT(tables(), HasSubstr(net::host_table(tag_)));
    EXPECT_THAT(denied(), HasSubstr("refused"));
    Server next(data_);
    ASSERT_TRUE(next.opened()) << next.error.message;
    EXPECT_EQ(next.held(), std::vector<std::string>{id_ + "+"});
    EXPECT_EQ(guest("cat /dev/shm/kept").out, "in memory\n");
}

TEST_F(RestartTest, AnAdoptedSandboxIsPausedAndResumed) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    EXPECT_EQ(guest("echo in memory > /dev/shm/kept").exit_code, 0);
    ASSERT_NO_FATAL_FAILURE(in_killed_server(
        [&](Server& server) { return server.run(server.node().pause(id_, PauseMode::with_memory)); }));
    EXPECT_FALSE(fs::exists(file("machine.json")));
    EXPECT_THAT(groups(), IsEmpty());
    ASSERT_NO_FATAL_FAILURE(in_killed_server([&](Server& server) -> Status {
        if (server.held() != std::vector<std::string>{id_ + "-"})
            return fail(ErrorCode::internal, "it is not paused");
        return server.run(server.node().resume(spec()));
    }));
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_EQ(server.held(), std::vector<std::string>{id_ + "+"});
    pid_ = engine::find_stray_vmms(data_ / "vmm").front();
    EXPECT_EQ(guest("cat /dev/shm/kept").out, "in memory\n");
    EXPECT_THAT(denied(), HasSubstr("refused"));
}

TEST_F(RestartTest, WhatWasPausedWhenTheServerDiedIsPaused) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    const std::string record = *read_file(file("machine.json"));
    ASSERT_NO_FATAL_FAILURE(in_killed_server(
        [&](Server& server) { return server.run(server.node().pause(id_, PauseMode::with_memory)); }));
    // As if it had been killed between the two files.
    ASSERT_OK(write_file_atomic(file("machine.json"), record, 0600));
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_EQ(server.held(), std::vector<std::string>{id_ + "-"});
    EXPECT_FALSE(fs::exists(file("machine.json")));
    ASSERT_OK(server.run(server.node().destroy(id_)));
}

TEST_F(RestartTest, ItsEndIsSeen) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    ::kill(pid_, SIGKILL);
    EXPECT_TRUE(test::eventually([&] { return server.on_loop([&] { return !server.exited.empty(); }); }));
    EXPECT_EQ(server.on_loop([&] { return server.exited; }), std::vector<std::string>{id_});
    ASSERT_OK(server.run(server.node().destroy(id_)));
    EXPECT_THAT(groups(), IsEmpty());
}

// What cannot be taken over is gone when the server is there.
TEST_F(RestartTest, WithoutAWholeRecordAMachineEnds) {
    using Damage = std::function<void(const fs::path&, const std::string&)>;
    const Damage removed = [](const fs::path& path, const std::string&) { fs::remove(path); };
    const Damage cut = [](const fs::path& path, const std::string& text) {
        (void)write_file_atomic(path, text.substr(0, text.size() / 2));
    };
    const Damage of_another_slot = [](const fs::path& path, std::string text) {
        const std::size_t at = text.find("\"slot\":") + 7;
        (void)write_file_atomic(path, text.insert(at, "1"));
    };
    const Damage in_another_namespace = [](const fs::path& path, std::string text) {
        const std::size_t at = text.find("\"netns\":") + 8;
        (void)write_file_atomic(path, text.insert(at, "1"));
    };
    for (const Damage& damage : {removed, cut, of_another_slot, in_another_namespace}) {
        ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
        damage(file("machine.json"), *read_file(file("machine.json")));
        Server server(data_);
        ASSERT_TRUE(server.opened()) << server.error.message;
        EXPECT_THAT(server.held(), IsEmpty());
        // It is ended while the server is there; whatever starts a machine waits for that.
        ASSERT_OK(server.run(server.node().create(spec())));
        EXPECT_EQ(engine::find_stray_vmms(data_ / "vmm").size(), 1U);
        EXPECT_EQ(groups(), std::vector<std::string>{id_});
        ASSERT_OK(server.run(server.node().destroy(id_)));
    }
}

// Only when it is asked is it known that a machine does not answer; who has it in his list is told then.
TEST_F(RestartTest, TheEndOfAMachineThatDoesNotAnswerIsTold) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    fs::remove(SandboxFolder(data_ / "sandboxes" / id_).monitor());
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_FALSE(server.connects(id_).has_value()) << "it waits for the end of the attempt";
    EXPECT_THAT(server.held(), IsEmpty());
    EXPECT_TRUE(test::eventually([&] { return engine::find_stray_vmms(data_ / "vmm").empty(); }));
    EXPECT_THAT(groups(), IsEmpty());
}

TEST_F(RestartTest, AServerThatIsNotThereForLongEndsNothing) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    for (int i = 0; i < 3; ++i) {
        Server brief(data_);
        ASSERT_TRUE(brief.opened()) << brief.error.message;
        brief.stop(true);
    }
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_EQ(server.held(), std::vector<std::string>{id_ + "+"});
    EXPECT_TRUE(server.connects(id_).has_value());
    EXPECT_EQ(guest("echo hello").out, "hello\n");
}

TEST_F(RestartTest, AMachineThatDiedMeanwhileIsGone) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    ::kill(pid_, SIGKILL);
    ASSERT_TRUE(test::eventually([&] { return engine::find_stray_vmms(data_ / "vmm").empty(); }));
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_THAT(server.held(), IsEmpty());
    EXPECT_TRUE(test::eventually([&] { return !fs::exists(data_ / "sandboxes" / id_); }));
}

TEST_F(RestartTest, AStartThatFailsEndsNothing) {
    ASSERT_NO_FATAL_FAILURE(create_in_killed_server());
    {
        // Another process has the instance's network.
        const std::string name = "glovebox-net-" + net::tag_text(tag_);
        UniqueFd taken(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&address),
                         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
                  0);
        Server refused(data_);
        EXPECT_FALSE(refused.opened());
        EXPECT_EQ(refused.error.code, ErrorCode::already_exists) << refused.error.message;
    }
    EXPECT_THAT(denied(), HasSubstr("refused"));
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    EXPECT_EQ(server.held(), std::vector<std::string>{id_ + "+"});
    Server second(data_);
    EXPECT_EQ(second.error.code, ErrorCode::already_exists) << "one server adopts";
    EXPECT_EQ(guest("echo hello").out, "hello\n");
}

TEST_F(RestartTest, NothingSecretIsWrittenDown) {
    Server server(data_);
    ASSERT_TRUE(server.opened()) << server.error.message;
    SandboxSpec secret = spec();
    secret.access_token = "token-" + random_id(20);
    secret.env_vars["SECRET"] = "value-" + random_id(20);
    ASSERT_OK(server.run(server.node().create(secret)));
    const std::string record = *read_file(file("machine.json"));
    EXPECT_THAT(record, HasSubstr(id_));
    EXPECT_THAT(record, Not(HasSubstr(secret.access_token)));
    EXPECT_THAT(record, Not(HasSubstr(secret.env_vars["SECRET"])));
    EXPECT_THAT(record, Not(HasSubstr("SECRET")));
}

}  // namespace
}  // namespace gb::live
