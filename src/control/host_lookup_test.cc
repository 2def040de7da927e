// SPDX-License-Identifier: Apache-2.0
#include "control/host_lookup.h"

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace gb {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

const HostAddresses kOne{asio::ip::make_address("192.0.2.1")};
constexpr milliseconds kLong = std::chrono::hours(1);

// A name server that says nothing until it is let go. Outlived by the threads that ask it.
struct Silent {
    std::promise<void> gate;
    std::shared_future<void> opened{gate.get_future().share()};
    std::function<Result<HostAddresses>(const std::string&)> resolve() {
        return [gate = opened](const std::string&) -> Result<HostAddresses> {
            gate.wait();
            return kOne;
        };
    }
    ~Silent() { gate.set_value(); }
};

using Answer = std::optional<Result<HostAddresses>>;

void spawn(asio::io_context& io, Answer& to, milliseconds limit,
           std::function<Result<HostAddresses>(const std::string&)> resolve) {
    asio::co_spawn(io, look_up_host("a.example", limit, std::move(resolve)),
                   [&to](const std::exception_ptr& failure, Result<HostAddresses> answer) {
                       if (failure) std::rethrow_exception(failure);
                       to = std::move(answer);
                   });
}

TEST(HostLookup, AnswersWithWhatTheResolverSays) {
    asio::io_context io;
    Answer found, none;
    spawn(io, found, kLong, [](const std::string& host) -> Result<HostAddresses> {
        EXPECT_EQ(host, "a.example");
        return kOne;
    });
    spawn(io, none, kLong, [](const std::string&) -> Result<HostAddresses> {
        return fail(ErrorCode::not_found, "nobody knows it");
    });
    io.run();
    EXPECT_EQ(**found, kOne);
    EXPECT_EQ(none->error().message, "nobody knows it");
    EXPECT_TRUE(resolve_host("localhost"));
    EXPECT_EQ(resolve_host("no-such-name.invalid").error().code, ErrorCode::not_found);
}

// It would wait for ever if the limit did not hold: the resolver goes on only after that.
TEST(HostLookup, AResolverThatHangsIsNotWaitedFor) {
    Silent silent;
    asio::io_context io;
    Answer late;
    spawn(io, late, milliseconds(1), silent.resolve());
    io.run();
    EXPECT_EQ(late->error().code, ErrorCode::deadline_exceeded);
}

TEST(HostLookup, ANameThatHangsHoldsUpNoOther) {
    Silent silent;
    asio::io_context io;
    Answer hangs, answers;
    spawn(io, hangs, kLong, silent.resolve());
    spawn(io, answers, kLong, [](const std::string&) -> Result<HostAddresses> { return kOne; });
    while (!answers) io.run_one();
    EXPECT_TRUE(answers->has_value());
    EXPECT_FALSE(hangs);
}

// The server may end while names are looked up.
TEST(HostLookup, ALoopThatIsGoneIsNotTold) {
    auto io = std::make_unique<asio::io_context>();
    Answer never;
    Silent silent;
    spawn(*io, never, kLong, silent.resolve());
    io->poll();
    io.reset();
    EXPECT_FALSE(never);
}

TEST(HostLookup, SoManyAtOnceAndNoMore) {
    asio::io_context io;
    std::vector<Answer> answers(200);
    {
        Silent silent;
        for (Answer& answer : answers) spawn(io, answer, kLong, silent.resolve());
        io.poll();
        ASSERT_TRUE(answers.back());
        EXPECT_EQ(answers.back()->error().code, ErrorCode::unavailable);
        EXPECT_FALSE(answers.front());
    }
    io.run();
    EXPECT_TRUE(answers.front()->has_value());
}

}  // namespace
}  // namespace gb
