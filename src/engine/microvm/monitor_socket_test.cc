// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/monitor_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;

class MonitorSocketTest : public ::testing::Test {
  protected:
    // Longer than any socket address.
    void SetUp() override { fs::create_directories(folder_ / std::string(200, 'a')); }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_ = fs::temp_directory_path() / ("glovebox-monitor-" + random_id(8));
    fs::path path_ = folder_ / std::string(200, 'a') / "monitor";
};

std::string take(int fd) {
    char buffer[64];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

TEST_F(MonitorSocketTest, AClientAfterTheOther) {
    auto listening = listen_monitor(path_);
    ASSERT_TRUE(listening) << listening.error().message;
    struct stat st{};
    ASSERT_EQ(::stat(path_.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0600U);
    for (const char* word : {"one", "two"}) {
        auto client = connect_monitor(path_);
        ASSERT_TRUE(client) << client.error().message;
        UniqueFd accepted(::accept(listening->get(), nullptr, nullptr));
        ASSERT_TRUE(write_all(accepted.get(), word));
        EXPECT_EQ(take(client->get()), word);
    }
}

TEST_F(MonitorSocketTest, NobodyListensAnyMore) {
    EXPECT_EQ(connect_monitor(path_).error().code, ErrorCode::not_found);
    {
        ASSERT_TRUE(listen_monitor(path_));
    }
    EXPECT_EQ(connect_monitor(path_).error().code, ErrorCode::unavailable);
    ASSERT_TRUE(listen_monitor(path_)) << "a name that is left over is replaced";
}

TEST_F(MonitorSocketTest, AQueueThatIsFullIsNotWaitedFor) {
    auto listening = listen_monitor(path_);
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 8; ++i) {
        auto client = connect_monitor(path_);
        if (!client) {
            EXPECT_EQ(client.error().code, ErrorCode::resource_exhausted);
            return;
        }
        clients.push_back(std::move(*client));
    }
    FAIL() << "eight clients wait";
}

TEST_F(MonitorSocketTest, PipesAreReadAgainAndNothingElse) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    read_end.reset();
    auto again = reopen_pipe(::getpid(), write_end.get());
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_TRUE(write_all(write_end.get(), "still here"));
    EXPECT_EQ(take(again->get()), "still here");

    UniqueFd file(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(reopen_pipe(::getpid(), file.get()).error().code, ErrorCode::failed_precondition);
    ASSERT_EQ(::mkfifo((folder_ / "named").c_str(), 0600), 0);
    UniqueFd named(::open((folder_ / "named").c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(reopen_pipe(::getpid(), named.get()).error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(reopen_pipe(::getpid(), 1000).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace gb::engine
