// SPDX-License-Identifier: Apache-2.0
#include "engine/console.h"

#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::engine {
namespace {

using namespace std::chrono_literals;

struct Pipe {
    UniqueFd read, write;
    Pipe() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
};

TEST(Console, KeepsTheEnd) {
    ConsoleReader reader;
    Pipe pipe;
    auto tail = reader.follow(std::move(pipe.read), 1000);
    ASSERT_TRUE(tail.has_value());
    std::string text(300'000, 'x');
    text += "the end";
    ASSERT_TRUE(write_all(pipe.write.get(), text).has_value());
    EXPECT_TRUE((*tail)->wait_for("the end", 5s));
    EXPECT_EQ((*tail)->text().size(), 1000U);
    EXPECT_TRUE((*tail)->text().ends_with("xthe end"));
}

TEST(Console, FindsTextThatComesInPieces) {
    ConsoleReader reader;
    Pipe pipe;
    auto tail = reader.follow(std::move(pipe.read));
    ASSERT_TRUE(tail.has_value());
    std::thread writer([&] {
        for (const char* part : {"glove", "box-", "probe", ": ok"}) {
            (void)write_all(pipe.write.get(), part);
            std::this_thread::sleep_for(5ms);
        }
    });
    EXPECT_TRUE((*tail)->wait_for("glovebox-probe: ok", 5s));
    writer.join();
    EXPECT_FALSE((*tail)->wait_for("never", 20ms));
}

TEST(Console, EndsWithItsWriter) {
    ConsoleReader reader;
    Pipe pipe;
    auto tail = reader.follow(std::move(pipe.read));
    ASSERT_TRUE(tail.has_value());
    EXPECT_FALSE((*tail)->wait_end(10ms));
    ASSERT_TRUE(write_all(pipe.write.get(), "last words").has_value());
    pipe.write.reset();
    EXPECT_TRUE((*tail)->wait_end(5s));
    EXPECT_EQ((*tail)->text(), "last words");
    EXPECT_FALSE((*tail)->wait_for("more", 5s)) << "and at once, since nothing more can come";
}

TEST(Console, ManyStreamsComeAndGo) {
    ConsoleReader reader;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&reader] {
            for (int i = 0; i < 50; ++i) {
                Pipe pipe;
                auto tail = reader.follow(std::move(pipe.read));
                ASSERT_TRUE(tail.has_value());
                (void)write_all(pipe.write.get(), "hello");
                if (i % 2 == 0) {
                    EXPECT_TRUE((*tail)->wait_for("hello", 5s));
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gb::engine
