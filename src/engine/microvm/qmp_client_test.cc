// SPDX-License-Identifier: Apache-2.0
// The client against monitors that behave, and monitors that a guest has taken over.
#include "engine/microvm/qmp_client.h"

#include <atomic>
#include <thread>

#include <sys/socket.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::engine {
namespace {

using namespace std::chrono_literals;

class QmpClientTest : public ::testing::Test {
  protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        client_ = QmpClient(UniqueFd(ends[0]));
        monitor_.reset(ends[1]);
    }
    void say(std::string_view text) { ASSERT_TRUE(write_all(monitor_.get(), text).has_value()); }
    std::string heard() {
        char buffer[4096];
        const ssize_t n = ::read(monitor_.get(), buffer, sizeof buffer);
        return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string();
    }
    QmpClient client_;
    UniqueFd monitor_;
};

TEST_F(QmpClientTest, AnswersMayFollowEvents) {
    say("{\"QMP\": {}}\n{\"event\": \"STOP\"}\n{\"return\": {}, \"id\": 1}\n{\"return\": {\"status\": "
        "\"paused\"}, \"id\": 2}\n");
    ASSERT_TRUE(client_.call_all({{"qmp_capabilities", {}, -1}}, 1s).has_value());
    auto status = client_.call({"query-status", {}, -1}, 1s);
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->at("status").as_string(), "paused");
    EXPECT_TRUE(client_.wait_event("STOP", 0ms).has_value()) << "an event that came before is kept";
    EXPECT_EQ(heard(),
              "{\"execute\":\"qmp_capabilities\",\"id\":1}\n{\"execute\":\"query-status\",\"id\":2}\n");
}

TEST_F(QmpClientTest, RefusalIsAnErrorAndTheTalkGoesOn) {
    say("{\"id\": 1, \"error\": {\"desc\": \"not now\"}}\n{\"return\": {}, \"id\": 2}\n{\"return\": {}, "
        "\"id\": 3}\n");
    auto status = client_.call_all({{"stop", {}, -1}, {"cont", {}, -1}}, 1s);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::failed_precondition);
    EXPECT_NE(status.error().message.find("not now"), std::string::npos);
    EXPECT_FALSE(client_.broken());
    EXPECT_TRUE(client_.call({"cont", {}, -1}, 1s).has_value());
}

TEST_F(QmpClientTest, DescriptorTravelsWithItsCommand) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(client_.send({"getfd", {}, null.get()}, 1s).has_value());
    char data[256];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec io{data, sizeof data};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ASSERT_GT(::recvmsg(monitor_.get(), &message, MSG_CMSG_CLOEXEC), 0);
    ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    UniqueFd got(fd);
    EXPECT_TRUE(got.valid());
}

TEST_F(QmpClientTest, SilenceEndsAtTheLimit) {
    auto reply = client_.call({"stop", {}, -1}, 50ms);
    EXPECT_EQ(reply.error().code, ErrorCode::deadline_exceeded);
    EXPECT_TRUE(client_.broken());
    say("{\"return\": {}, \"id\": 1}\n");
    EXPECT_EQ(client_.call({"cont", {}, -1}, 50ms).error().code, ErrorCode::unavailable)
        << "a late answer is no answer";
}

TEST_F(QmpClientTest, QemuAtWorkIsWaitedFor) {
    int looks = 0;
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    monitor_.reset(ends[1]);
    QmpClient client(UniqueFd(ends[0]), [&](StallLimit& limit) -> Status {
        limit.moved();
        if (++looks == 20) say("{\"return\": {}, \"id\": 1}\n");
        return {};
    });
    EXPECT_TRUE(client.call({"stop", {}, -1}, {10ms, 1h}).has_value());
    EXPECT_EQ(looks, 20);
    // Whatever it does, there is an end.
    looks = 100;
    EXPECT_EQ(client.call({"stop", {}, -1}, {10ms, 50ms}).error().code, ErrorCode::deadline_exceeded);
}

TEST_F(QmpClientTest, GoneIsUnavailable) {
    monitor_.reset();
    EXPECT_EQ(client_.call({"stop", {}, -1}, 1s).error().code, ErrorCode::unavailable);
}

TEST_F(QmpClientTest, AnswerToAnotherQuestionBreaks) {
    say("{\"return\": {}, \"id\": 2}\n");
    EXPECT_EQ(client_.call({"stop", {}, -1}, 1s).error().code, ErrorCode::data_loss);
    EXPECT_TRUE(client_.broken());
}

TEST_F(QmpClientTest, FloodOfEventsIsNotAnAnswer) {
    std::atomic<bool> stop{false};
    ::fcntl(monitor_.get(), F_SETFL, O_NONBLOCK);
    std::thread flood([&] {
        std::string lines;
        for (int i = 0; i < 100; ++i) lines += "{\"event\": \"NOISE\", \"data\": {\"a\": [1, 2, 3]}}\n";
        while (!stop) [[maybe_unused]]
            ssize_t n = ::write(monitor_.get(), lines.data(), lines.size());
    });
    EXPECT_FALSE(client_.call({"stop", {}, -1}, 5s).has_value());
    EXPECT_FALSE(client_.wait_event("MIGRATION", 5s).has_value());
    EXPECT_TRUE(client_.broken());
    stop = true;
    flood.join();
}

TEST_F(QmpClientTest, MonitorThatDoesNotReadCannotHoldUs) {
    boost::json::object big;
    big["x"] = std::string(4 << 20, 'x');
    EXPECT_EQ(client_.send({"stop", big, -1}, 100ms).error().code, ErrorCode::deadline_exceeded);
    EXPECT_TRUE(client_.broken());
}

TEST_F(QmpClientTest, EventsOfANameAreTakenTogether) {
    say("{\"event\": \"BLOCK_IO_ERROR\"}\n{\"event\": \"STOP\"}\n{\"event\": \"BLOCK_IO_ERROR\"}\n");
    ASSERT_TRUE(client_.drain().has_value());
    EXPECT_FALSE(client_.take_events("RESUME"));
    EXPECT_TRUE(client_.take_events("BLOCK_IO_ERROR"));
    EXPECT_FALSE(client_.take_events("BLOCK_IO_ERROR"));
    EXPECT_TRUE(client_.take_events("STOP")) << "others stay";
}

TEST_F(QmpClientTest, DrainTakesWhatIsThere) {
    say("{\"event\": \"RTC_CHANGE\"}\n{\"event\": \"STOP\"}\n");
    ASSERT_TRUE(client_.drain().has_value());
    EXPECT_TRUE(client_.wait_event("STOP", 0ms).has_value());
    monitor_.reset();
    EXPECT_FALSE(client_.drain().has_value());
}

}  // namespace
}  // namespace gb::engine
