// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/startup.h"

#include <gtest/gtest.h>

namespace gb::interpreter {
namespace {

TEST(Startup, SaysWhatIsReadyWhatIsBeingStartedAndWhatWaits) {
    std::int64_t now = 5'000;
    Startup startup([&] { return now; });
    for (const char* name : {"python", "r", "java"}) startup.plan(name);
    startup.begin("python");
    now += 99'000;
    startup.ready("python");
    startup.begin("r");
    now += 1'500;
    EXPECT_EQ(startup.json([](auto) { return true; }),
              R"({"status":"starting","startup":[{"name":"python","state":"ready","seconds":99.0},)"
              R"({"name":"r","state":"starting","seconds":1.5},{"name":"java","state":"waits"}]})");
}

TEST(Startup, FailuresHaveReasonsUntilTheyAreMended) {
    std::int64_t now = 1'000;
    Startup startup([&] { return now; });
    startup.plan("r");
    startup.begin("r");
    now += 2'000;
    startup.failed("r", "the kernel \"exited\"");
    EXPECT_EQ(startup.json([](auto) { return true; }),
              R"({"status":"starting","startup":[{"name":"r","state":"failed","seconds":2.0,"error":"the kernel \"exited\""}]})");
    now += 1'000;
    startup.begin("r");  // the clock goes on: it is the same start
    startup.ready("r");
    EXPECT_EQ(startup.json([](auto) { return true; }),
              R"({"status":"starting","startup":[{"name":"r","state":"ready","seconds":3.0}]})");
}

TEST(Startup, WhatHasEndedIsBeingStartedAgain) {
    Startup startup([] { return 1'000; });
    startup.plan("python");
    startup.begin("python");
    startup.ready("python");
    EXPECT_EQ(startup.json([](auto) { return false; }),
              R"({"status":"starting","startup":[{"name":"python","state":"starting"}]})");
}

TEST(Startup, ItsClockMayStartAnywhere) {
    std::int64_t now = 0;
    Startup startup([&] { return now; });
    startup.plan("python");
    startup.plan("python");
    startup.begin("nobody");
    EXPECT_EQ(startup.json([](auto) { return true; }),
              R"({"status":"starting","startup":[{"name":"python","state":"waits"}]})");
}

}  // namespace
}  // namespace gb::interpreter
