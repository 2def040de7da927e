// SPDX-License-Identifier: Apache-2.0
#include "node/machinery.h"

#include <future>

#include <sys/file.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

class LockFolderTest : public ::testing::Test {
  protected:
    void TearDown() override { (void)remove_tree(folder_); }
    const fs::path folder_ = fs::temp_directory_path() / ("glovebox-lock-" + random_id(8));
};

TEST_F(LockFolderTest, IsForOne) {
    auto first = lock_folder(folder_, Busy::refuse);
    ASSERT_OK(first);
    EXPECT_EQ(lock_folder(folder_, Busy::refuse).error().code, ErrorCode::already_exists);
    first->reset();
    EXPECT_TRUE(lock_folder(folder_, Busy::refuse).has_value());
}

// A server that is killed between the fork and the exec of a program leaves its descriptors to that child for a moment.
TEST_F(LockFolderTest, AChildOfADeadHolderIsWaitedFor) {
    int said[2], told[2];
    ASSERT_EQ(::pipe2(said, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(told, O_CLOEXEC), 0);
    const pid_t holder = ::fork();
    if (holder == 0) {
        auto lock = lock_folder(folder_, Busy::refuse);
        if (lock && ::fork() == 0) {
            char byte = 'x';
            (void)!::write(said[1], &byte, 1);
            (void)!::read(told[0], &byte, 1);
        }
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(said[0], &byte, 1), 1);
    ::waitpid(holder, nullptr, 0);
    auto raw = open_file(folder_ / "lock", O_RDWR);
    ASSERT_OK(raw);
    ASSERT_NE(::flock(raw->get(), LOCK_EX | LOCK_NB), 0) << "the child has it";

    auto next = std::async(std::launch::async, [&] { return lock_folder(folder_, Busy::refuse); });
    ASSERT_EQ(::write(told[1], &byte, 1), 1);
    ASSERT_OK(next.get());
    for (int fd : {said[0], said[1], told[0], told[1]}) ::close(fd);
}

}  // namespace
}  // namespace gb
