#include "control/lifecycle.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

using enum SandboxState;

TEST(Lifecycle, OnlyTheListedMovesAreAllowed) {
    EXPECT_TRUE(may_move(creating, running));
    EXPECT_TRUE(may_move(creating, killing));
    EXPECT_TRUE(may_move(running, killing));
    for (SandboxState any : {creating, running, killing}) {
        EXPECT_FALSE(may_move(killing, any));
        EXPECT_FALSE(may_move(any, creating));
        EXPECT_FALSE(may_move(any, any));
    }
}

}  // namespace
}  // namespace gb
