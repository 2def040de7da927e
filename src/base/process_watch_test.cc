// SPDX-License-Identifier: Apache-2.0
#include "base/process_watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gb {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(ProcessWatch, WorkMovesAndWaitingDoesNot) {
    const ProcessSamples before{{7, {.busy_us = 5 * kSecond}}};
    EXPECT_FALSE(moved_between(before, before, kSecond));
    // Timers of one that idles.
    EXPECT_FALSE(moved_between(before, {{7, {.busy_us = 5 * kSecond + 50'000}}}, kSecond));
    EXPECT_TRUE(moved_between(before, {{7, {.busy_us = 5 * kSecond + 200'000}}}, kSecond));
    EXPECT_FALSE(moved_between(before, {{7, {.busy_us = 5 * kSecond + 200'000}}}, 2 * kSecond));
}

TEST(ProcessWatch, WorkOfSeveralProcessesAddsUp) {
    const ProcessSamples before{{7, {.busy_us = 0}}, {8, {.busy_us = 0}}};
    EXPECT_TRUE(moved_between(before, {{7, {.busy_us = 100'000}}, {8, {.busy_us = 100'000}}}, kSecond));
    // What a thread that ended had used is not missed elsewhere.
    const ProcessSamples busy{{7, {.busy_us = 9 * kSecond}}, {8, {.busy_us = 0}}};
    EXPECT_TRUE(moved_between(busy, {{7, {.busy_us = kSecond}}, {8, {.busy_us = 300'000}}}, kSecond));
}

TEST(ProcessWatch, NewProcessesAndSlowDisksMove) {
    const ProcessSamples before{{7, {}}};
    EXPECT_TRUE(moved_between(before, {{7, {}}, {8, {}}}, kSecond));
    EXPECT_FALSE(moved_between({{7, {}}, {8, {}}}, before, kSecond));
    EXPECT_TRUE(moved_between(before, {{7, {.busy_us = 0, .disk_wait = true}}}, kSecond));
    EXPECT_FALSE(moved_between(before, {}, kSecond));
}

TEST(ProcessWatch, ReadsALineOfStat) {
    auto line = parse_stat_line("12 (a) b (c) S 3 12 12 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 1 0 99");
    ASSERT_TRUE(line);
    EXPECT_EQ(line->state, 'S');
    EXPECT_EQ(line->parent, 3);
    EXPECT_EQ(line->ticks, 560U);
    EXPECT_FALSE(parse_stat_line("12"));
    EXPECT_FALSE(parse_stat_line("12 (a) S 3"));
}

TEST(ProcessWatch, FollowsDescendants) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::fork() == 0)
            for (volatile unsigned work = 0;;) work = work + 1;
        for (;;) ::pause();
    }
    ProcessSamples samples;
    while ((samples = sample_processes(child, Family::with_descendants)).size() < 2) ::usleep(1000);
    EXPECT_EQ(sample_processes(child, Family::alone).size(), 1U);
    ProcessWatch both(child, Family::with_descendants);
    while (!both.moved()) ::usleep(10'000);
    // The one that only waits is seen to wait, as soon as it has come to that.
    for (bool moved = true; moved;) {
        const ProcessSamples before = sample_processes(child, Family::alone);
        ::usleep(kSecond);
        moved = moved_between(before, sample_processes(child, Family::alone), kSecond);
    }
    for (const auto& [pid, sample] : samples) ::kill(pid, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(sample_processes(child, Family::with_descendants).empty());
}

}  // namespace
}  // namespace gb
