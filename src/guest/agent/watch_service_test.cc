// SPDX-License-Identifier: Apache-2.0
// WatchDir and the polled watchers of contract 3.4, against a running agent.
#include <fstream>

#include "guest/agent/agent_test_support.h"

namespace gb::agent {
namespace {

using namespace filesystem;

constexpr auto kWatchDir = "/filesystem.Filesystem/WatchDir";

WatchDirRequest watch(const std::string& path, bool recursive = false) {
    WatchDirRequest request;
    request.set_path(path);
    request.set_recursive(recursive);
    return request;
}

void touch(const std::string& path) {
    std::ofstream(path).close();
}

TEST(WatchDir, StartsWithAStartAndTellsEachChange) {
    const TestAgent agent;
    const TestFolder folder;
    WatchDirRequest request = watch(folder.path());
    request.set_include_entry(true);
    for (const Encoding encoding : {Encoding::json, Encoding::binary}) {
        ServerStream stream(agent, kWatchDir, request, {}, encoding);
        WatchDirResponse message;
        ASSERT_TRUE(stream.next(message));
        EXPECT_TRUE(message.has_start());
        touch(folder.path("new"));
        ASSERT_TRUE(stream.next(message));
        EXPECT_EQ(message.filesystem().name(), "new");
        EXPECT_EQ(message.filesystem().type(), EVENT_TYPE_CREATE);
        EXPECT_EQ(message.filesystem().entry().path(), folder.path("new"));
        EXPECT_EQ(message.filesystem().entry().type(), FILE_TYPE_FILE);
        std::filesystem::remove(folder.path("new"));
        ASSERT_TRUE(stream.next(message));
        EXPECT_EQ(message.filesystem().type(), EVENT_TYPE_REMOVE);
        EXPECT_FALSE(message.filesystem().has_entry());
    }
}

TEST(WatchDir, KeepsTheConnectionAliveAndEndsAtItsDeadline) {
    const TestAgent agent;
    const TestFolder folder;
    ServerStream stream(agent, kWatchDir, watch(folder.path()),
                        {{"Keepalive-Ping-Interval", "1"}, {"Connect-Timeout-Ms", "1500"}});
    WatchDirResponse message;
    ASSERT_TRUE(stream.next(message));
    ASSERT_TRUE(stream.next(message));
    EXPECT_TRUE(message.has_keepalive());
    EXPECT_FALSE(stream.next(message));
    EXPECT_NE(stream.trailer().find("deadline_exceeded"), std::string::npos);
}

TEST(WatchDir, SaysWhatItCannotWatch) {
    const TestAgent agent;
    const TestFolder folder;
    touch(folder.path("file"));
    WatchDirResponse message;
    ServerStream missing(agent, kWatchDir, watch(folder.path("missing")));
    EXPECT_FALSE(missing.next(message));
    EXPECT_NE(missing.trailer().find("not_found"), std::string::npos);
    ServerStream file(agent, kWatchDir, watch(folder.path("file")));
    EXPECT_FALSE(file.next(message));
    EXPECT_NE(file.trailer().find("invalid_argument"), std::string::npos);
    ServerStream stranger(agent, kWatchDir, watch(folder.path()), {{"Authorization", "Basic bm9uZTo="}});
    EXPECT_FALSE(stranger.next(message));
    EXPECT_NE(stranger.trailer().find("unauthenticated"), std::string::npos);
}

TEST(WatchDir, EndsWithTheFolder) {
    const TestAgent agent;
    const TestFolder outer;
    std::filesystem::create_directory(outer.path("in"));
    ServerStream stream(agent, kWatchDir, watch(outer.path("in")));
    WatchDirResponse message;
    ASSERT_TRUE(stream.next(message));
    std::filesystem::remove(outer.path("in"));
    ASSERT_TRUE(stream.next(message));
    EXPECT_EQ(message.filesystem().type(), EVENT_TYPE_REMOVE);
    EXPECT_FALSE(stream.next(message));
    EXPECT_EQ(stream.trailer(), "{}");
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(WatchDir, AClientThatLeavesLeavesNothingOpen) {
    const TestAgent agent;
    const TestFolder folder;
    const auto before = open_descriptors();
    for (int i = 0; i < 20; ++i) {
        ServerStream stream(agent, kWatchDir, watch(folder.path(), true));
        WatchDirResponse message;
        ASSERT_TRUE(stream.next(message));
        stream.disconnect();
    }
    for (int i = 0; i < 200 && open_descriptors() > before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_LE(open_descriptors(), before);
}

class Polling : public ::testing::Test {
  protected:
    std::string create(const std::string& path, bool recursive = false) {
        CreateWatcherRequest request;
        request.set_path(path);
        request.set_recursive(recursive);
        return client_.call<CreateWatcherResponse>("/filesystem.Filesystem/CreateWatcher", request)
            .first.watcher_id();
    }
    std::pair<GetWatcherEventsResponse, TestClient::Response> get(const std::string& id) {
        GetWatcherEventsRequest request;
        request.set_watcher_id(id);
        return client_.call<GetWatcherEventsResponse>("/filesystem.Filesystem/GetWatcherEvents", request);
    }
    int remove(const std::string& id) {
        RemoveWatcherRequest request;
        request.set_watcher_id(id);
        return client_.call<RemoveWatcherResponse>("/filesystem.Filesystem/RemoveWatcher", request)
            .second.head.status;
    }

    TestAgent agent_;
    TestFolder folder_;
    TestClient client_{agent_};
};

TEST_F(Polling, EachEventIsFetchedOnce) {
    const std::string id = create(folder_.path(), true);
    ASSERT_TRUE(id.starts_with('w')) << id;
    EXPECT_EQ(get(id).first.events_size(), 0);
    std::filesystem::create_directories(folder_.path("a/b"));
    touch(folder_.path("a/b/c"));
    // What happened before the call is in its answer.
    const auto first = get(id).first;
    ASSERT_EQ(first.events_size(), 3);
    EXPECT_EQ(first.events(2).name(), "a/b/c");
    EXPECT_EQ(get(id).first.events_size(), 0);
    EXPECT_EQ(remove(id), 200);
    EXPECT_EQ(remove(id), 404);
    EXPECT_EQ(get(id).second.head.status, 404);
}

TEST_F(Polling, WhatNobodyFetchesIsBoundedAndTheLossReported) {
    const std::string id = create(folder_.path());
    for (int i = 0; i < 10'000; ++i) {
        touch(folder_.path("a"));
        std::filesystem::remove(folder_.path("a"));
    }
    auto [events, response] = get(id);
    EXPECT_EQ(events.events_size(), 16'384);
    EXPECT_EQ(get(id).second.head.status, 500);
    EXPECT_NE(get(id).second.body.find("data_loss"), std::string::npos);
    EXPECT_EQ(remove(id), 200);
}

}  // namespace
}  // namespace gb::agent
